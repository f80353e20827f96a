"""Files of rows, read in pieces: CSV, JSON, lines of JSON, Parquet and Arrow."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tureen.cli.file_formats import STDIN, FileKind
from tureen.client.row_upload import CsvText
from tureen.errors import InvalidRows, TureenError
from tureen.schema import Schema
from tureen.stems.csv_file import read_csv_bytes


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file."""

    rows: pa.Table | list[Any] | CsvText
    count: int
    read: int
    """How many bytes of the file have been read with them."""

    digest: str
    """A fingerprint of what the file says."""


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_chunks(file: str, kind: FileKind, schema: Schema | None, rows: int) -> Iterator[Chunk]:
    """The rows of a file, or of standard input, some at a time; CSV without a schema stays text, as it has no types."""
    with _opened(file) as source:
        match kind:
            case FileKind.CSV:
                yield from _csv(source, Path(file).name if file != STDIN else "standard input", schema, rows)
            case FileKind.PARQUET:
                parquet = pyarrow.parquet.ParquetFile(_seekable(source))
                yield from _batches(source, parquet.iter_batches(batch_size=rows), rows)
            case FileKind.ARROW:
                yield from _batches(source, _arrow(_seekable(source)), rows)
            case _:
                yield from _json(source, rows)


def read_table(file: str, kind: FileKind, schema: Schema | None) -> pa.Table:
    """All rows of a file with types of their own; those of CSV are guessed where there is no schema."""
    with _opened(file) as source:
        match kind:
            case FileKind.CSV if schema is None:
                return pyarrow.csv.read_csv(io.BytesIO(source.read()))
            case FileKind.CSV:
                assert schema is not None
                return read_csv_bytes(schema, source.read(), file)
            case FileKind.PARQUET:
                return pyarrow.parquet.read_table(_seekable(source))
            case FileKind.ARROW:
                return pa.Table.from_batches(_arrow(_seekable(source)))
            case _:
                return pa.Table.from_pylist([row for some, _ in _objects(source, 1 << 16) for row in some])


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """The file's bytes; what cannot be read is told with its name."""
    try:
        if file == STDIN:
            yield sys.stdin.buffer
        else:
            with Path(file).open("rb") as source:
                yield source
    except OSError as error:
        raise TureenError(f"'{file}' cannot be read", detail=error.strerror or str(error)) from None
    except (pa.ArrowException, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidRows(f"'{file}' cannot be read", detail=str(error), hint="is --format right?") from None


def _seekable(source: IO[bytes]) -> IO[bytes]:
    return source if source.seekable() else io.BytesIO(source.read())


def _place(source: IO[bytes]) -> int:
    return source.tell() if source.seekable() else 0


def _batches(source: IO[bytes], batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Chunk]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            some = batch.slice(start, rows)
            yield Chunk(pa.Table.from_batches([some]), some.num_rows, _place(source), _digest(some.serialize()))


def _arrow(source: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or of an Arrow stream."""
    if source.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(source)
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    source.seek(0)
    return iter(pa.ipc.open_stream(source))


def _json(source: IO[bytes], rows: int) -> Iterator[Chunk]:
    for some, read in _objects(source, rows):
        yield Chunk(some, len(some), read, _digest(json.dumps(some).encode()))


def _objects(source: IO[bytes], rows: int) -> Iterator[tuple[list[Any], int]]:
    """The objects of an array, which is read as a whole, or of lines; with how many bytes have been read."""
    lines = iter(source)
    first = next((line for line in lines if line.strip()), b"")
    if first.lstrip().startswith(b"["):
        found = json.loads(first + source.read())
        for start in range(0, len(found), rows):
            yield found[start : start + rows], _place(source)
        return
    read, some = len(first), [json.loads(first)] if first else []
    for number, line in enumerate(lines, 2):
        read += len(line)
        if line.strip():
            try:
                some.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise InvalidRows(f"line {number} is not JSON", detail=str(error)) from None
        if len(some) >= rows:
            yield some, read
            some = []
    if some:
        yield some, read


def _csv(source: IO[bytes], name: str, schema: Schema | None, rows: int) -> Iterator[Chunk]:
    """The rows of a CSV text; each piece is read with the header before it."""
    records = _records(source)
    header, lines = next(records, (b"", 0))
    read, before = len(header), lines
    some: list[bytes] = []
    for record, count in records:
        some.append(record)
        lines += count
        if len(some) >= rows:
            chunk = _piece(schema, name, header, some, before, read)
            yield chunk
            some, before, read = [], lines, chunk.read
    if some or not read:
        yield _piece(schema, name, header, some, before, read)


def _piece(schema: Schema | None, name: str, header: bytes, records: list[bytes], before: int, read: int) -> Chunk:
    """Some records of a CSV text that has so many lines and bytes before them."""
    piece = b"".join(records)
    end, digest = read + len(piece), _digest(header + piece)
    if schema is not None:
        table = _typed(schema, name, header, piece, before)
        return Chunk(table, table.num_rows, end, digest)
    count = sum(1 for record in records if record.strip())
    return Chunk(CsvText(name, _head(header), piece, before), count, end, digest)


def _records(source: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Each record with the number of its lines: one, unless a quoted field goes over several."""
    parts: list[bytes] = []
    quotes = 0
    for line in source:
        parts.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            yield (line, 1) if len(parts) == 1 else (b"".join(parts), len(parts))
            parts, quotes = [], 0
    if parts:
        yield b"".join(parts), len(parts)


def _typed(schema: Schema, name: str, header: bytes, piece: bytes, before: int) -> pa.Table:
    """A piece in the types of a schema; an error names the line of the whole file."""
    text = CsvText(name, _head(header), piece, before)
    try:
        return read_csv_bytes(schema, text.data, name)
    except InvalidRows:
        read_csv_bytes(schema, text.padded, name)
        raise


def _head(header: bytes) -> bytes:
    return header if header.endswith(b"\n") or not header else header + b"\n"
