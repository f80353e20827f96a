"""Files of rows, read in chunks: CSV, JSON, NDJSON, Parquet, Arrow and XML."""

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
from tureen.stems.row_items import split_items
from tureen.stems.xml_items import ItemReader, read_xml_batches


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a file."""

    rows: pa.Table | list[Any] | CsvText
    count: int
    read: int
    """The number of bytes read from the file up to the end of the chunk."""

    digest: str
    """A hash of the chunk's content."""

    punctuations: int = 0
    """The number of punctuations among the rows, which do not count as rows."""


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_chunks(
    file: str, kind: FileKind, schema: Schema | None, rows: int, item: str | None = None
) -> Iterator[Chunk]:
    """Read a file or standard input in chunks of at most `rows` rows; CSV without a schema stays text.

    `item` is the path of the items of XML.
    """
    with _opened(file) as source:
        match kind:
            case FileKind.CSV:
                yield from _csv(source, Path(file).name if file != STDIN else "standard input", schema, rows)
            case FileKind.PARQUET:
                parquet = pyarrow.parquet.ParquetFile(_seekable(source))
                yield from _batches(source, parquet.iter_batches(batch_size=rows), rows)
            case FileKind.ARROW:
                yield from _batches(source, _arrow(_seekable(source)), rows)
            case FileKind.XML:
                assert schema is not None
                yield from _xml(source, file, schema, item, rows)
            case _:
                yield from _json(source, rows)


def read_table(file: str, kind: FileKind, schema: Schema | None) -> pa.Table:
    """Read all rows of a file; the types of CSV are inferred if there is no schema."""
    if kind is FileKind.XML:
        raise TureenError("only streams are read from XML", hint="convert the file to CSV or Parquet")
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
                return pa.Table.from_pylist([row for objects, _ in _objects(source, 1 << 16) for row in objects])


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """Open a file or standard input; read errors name the file."""
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


def _offset(source: IO[bytes]) -> int:
    return source.tell() if source.seekable() else 0


def _batches(source: IO[bytes], batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Chunk]:
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            yield Chunk(pa.Table.from_batches([part]), part.num_rows, _offset(source), _digest(part.serialize()))


def _arrow(source: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or stream."""
    if source.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(source)
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    source.seek(0)
    return iter(pa.ipc.open_stream(source))


def _json(source: IO[bytes], rows: int) -> Iterator[Chunk]:
    for objects, read in _objects(source, rows):
        punctuations = len(split_items(objects)[1])
        digest = _digest(json.dumps(objects).encode())
        yield Chunk(objects, len(objects) - punctuations, read, digest, punctuations)


def _objects(source: IO[bytes], rows: int) -> Iterator[tuple[list[Any], int]]:
    """The objects of a JSON array, which is read as a whole, or of NDJSON; with the number of bytes read."""
    lines = iter(source)
    first = next((line for line in lines if line.strip()), b"")
    if first.lstrip().startswith(b"["):
        array = json.loads(first + source.read())
        for start in range(0, len(array), rows):
            yield array[start : start + rows], _offset(source)
        return
    read, objects = len(first), [json.loads(first)] if first else []
    for number, line in enumerate(lines, 2):
        read += len(line)
        if line.strip():
            try:
                objects.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise InvalidRows(f"line {number} is not valid JSON", detail=str(error)) from None
        if len(objects) >= rows:
            yield objects, read
            objects = []
    if objects:
        yield objects, read


def _xml(source: IO[bytes], file: str, schema: Schema, item: str | None, rows: int) -> Iterator[Chunk]:
    """The items of a document, which is read completely before its first rows are used, or of standard input."""
    reader = ItemReader(schema, item, "standard input" if file == STDIN else Path(file).name)
    tables = read_xml_batches(reader, source, rows)
    for table in tables if file == STDIN else list(tables):
        batches = table.combine_chunks().to_batches()
        digest = _digest(b"".join(batch.serialize() for batch in batches))
        yield Chunk(table, table.num_rows, _offset(source), digest)


def _csv(source: IO[bytes], name: str, schema: Schema | None, rows: int) -> Iterator[Chunk]:
    """The rows of a CSV file; each chunk is parsed with the header before it."""
    all_records = _records(source)
    header, lines = next(all_records, (b"", 0))
    read, lines_before = len(header), lines
    records: list[bytes] = []
    for record, line_count in all_records:
        records.append(record)
        lines += line_count
        if len(records) >= rows:
            chunk = _csv_chunk(schema, name, header, records, lines_before, read)
            yield chunk
            records, lines_before, read = [], lines, chunk.read
    if records or not read:
        yield _csv_chunk(schema, name, header, records, lines_before, read)


def _csv_chunk(
    schema: Schema | None, name: str, header: bytes, records: list[bytes], lines_before: int, bytes_before: int
) -> Chunk:
    """Records of a CSV file as a chunk."""
    body = b"".join(records)
    end, digest = bytes_before + len(body), _digest(header + body)
    text = CsvText(name, _terminated(header), body, lines_before)
    if schema is not None:
        table = _typed(schema, text)
        return Chunk(table, table.num_rows, end, digest)
    count = sum(1 for record in records if record.strip())
    return Chunk(text, count, end, digest)


def _records(source: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """The records with their numbers of lines: a quoted field may span several lines."""
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


def _typed(schema: Schema, text: CsvText) -> pa.Table:
    """Parse CSV with the types of a schema; errors have the line numbers of the whole file."""
    try:
        return read_csv_bytes(schema, text.data, text.name)
    except InvalidRows:
        read_csv_bytes(schema, text.padded, text.name)
        raise


def _terminated(header: bytes) -> bytes:
    return header if header.endswith(b"\n") or not header else header + b"\n"
