"""Answers as JSON, CSV, Arrow or XML: small ones as one body, large ones in chunks."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from tureen.errors import TooLarge
from tureen.punctuation import Punctuation
from tureen.results.answer import Answer, xml_pieces
from tureen.schema import type_of_arrow
from tureen.service.bodies import ARROW, CSV, JSON, XML
from tureen.service.error_responses import HttpError

CHUNK_ROWS = 8_192
"""The rows of a chunk; an answer of at most this many rows is sent as one body."""

MAX_WHOLE_BYTES = 4 << 20
"""An answer of more bytes is sent in chunks, whatever its number of rows."""

MIN_GZIP_BYTES = 1_024
"""A smaller body is not compressed."""

_ALIASES = {"*/*": JSON, "application/*": JSON, "text/*": CSV}


@dataclass(frozen=True)
class ResponseFormat:
    """How a client asks for an answer: media type, compression, cached tag and row limit."""

    media_type: str
    gzip: bool
    if_none_match: str | None = None
    limit: int | None = None
    max_rows: int = 1 << 62
    now: str = ""
    """The request's `now` parameter, which its ETag covers."""


@dataclass(frozen=True)
class Rendered:
    """The headers and body of a response; `body` is None if the client's cached answer is current."""

    headers: dict[str, str]
    body: bytes | Iterator[bytes] | None


def negotiate_media_type(accept: str | None) -> str:
    """The media type of the response to an Accept header.

    >>> negotiate_media_type("text/csv;q=0.5, application/vnd.apache.arrow.stream"), negotiate_media_type("*/*")
    ('application/vnd.apache.arrow.stream', 'application/json')
    """
    if not accept or accept == "*/*":
        return JSON
    best_weight, best_type = 0.0, ""
    for part in accept.split(","):
        name, *parameters = (field.strip().lower() for field in part.split(";"))
        weight = next((_weight(parameter[2:]) for parameter in parameters if parameter.startswith("q=")), 1.0)
        media_type = _ALIASES.get(name, name)
        if media_type in (JSON, CSV, ARROW, XML) and weight > best_weight:
            best_weight, best_type = weight, media_type
    if not best_type:
        hint = f"accept {JSON}, {CSV}, {ARROW} or {XML}"
        raise HttpError(406, f"no supported media type in '{accept[:80]}'", hint=hint)
    return best_type


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether an Accept-Encoding header allows gzip.

    >>> accepts_gzip("gzip, br"), accepts_gzip("gzip;q=0"), accepts_gzip(None)
    (True, False, False)
    """
    for part in (accept_encoding or "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "x-gzip", "*"):
            return _weight(weight.partition("=")[2] or "1") > 0
    return False


def render(answer: Answer, response_format: ResponseFormat, lead: Mapping[str, Any] | None = None) -> Rendered:
    """Render an answer; the fields of `lead` come first in a JSON body."""
    table, truncated = answer.table, False
    limit, max_rows = response_format.limit, response_format.max_rows
    if limit is not None and table.num_rows > limit:
        table, truncated = table.slice(0, limit), True
    if table.num_rows > max_rows:
        raise TooLarge(
            f"an answer may have at most {max_rows:,} rows, this one has {table.num_rows:,}", hint="add ?limit="
        )
    headers = _headers(answer, truncated)
    head = {**(lead or {}), "columns": columns_of(table.schema)}
    tail = {
        "window": {"begin": _iso(answer.window.begin), "end": _iso(answer.window.end)},
        "position": answer.position,
        "complete": answer.complete,
        "note": answer.note,
        "truncated": truncated,
    }
    media_type = response_format.media_type
    tagged = [media_type, headers["Tureen-Complete"], headers["Tureen-Truncated"], str(head["columns"])]
    if response_format.now:
        tagged += [response_format.now, str(answer.window)]
    if table.num_rows > CHUNK_ROWS or table.nbytes > MAX_WHOLE_BYTES:
        etag = _etag(tagged, _canonical_chunks(table))
        return _respond(response_format, headers, etag, _chunks(media_type, table, head, tail))
    if media_type == JSON:
        # The tag covers the rows alone: the window and the position differ each time.
        rows = _json_rows(table)
        body = b"".join([_json_start(head), rows, _json_end(tail)])
        return _respond(response_format, headers, _etag(tagged, [rows]), [body])
    body = b"".join(_chunks(media_type, table, head, tail))
    return _respond(response_format, headers, _etag(tagged, [body]), [body])


def unless_known(rendered: Rendered, if_none_match: str | None) -> Rendered:
    """A rendered answer, or one without a body if the client has it: if a header If-None-Match contains its tag."""
    if if_none_match is None or not _matches(if_none_match, rendered.headers["ETag"]):
        return rendered
    headers = {name: value for name, value in rendered.headers.items() if not name.startswith("Content-")}
    return Rendered(headers, None)


def render_table(table: pa.Table, response_format: ResponseFormat) -> Rendered:
    """Render the rows of a table."""
    head = {"columns": columns_of(table.schema)}
    return _respond(response_format, {}, None, _chunks(response_format.media_type, table, head, {}))


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The names and SQL types of the columns."""
    return [{"name": field.name, "type": _sql_type(field.type)} for field in schema]


def _sql_type(arrow_type: pa.DataType) -> str:
    known = type_of_arrow(arrow_type)
    return str(arrow_type).upper() if known is None else known.sql


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _headers(answer: Answer, truncated: bool) -> dict[str, str]:
    headers = {
        "Tureen-Position": answer.position,
        "Tureen-Complete": str(answer.complete).lower(),
        "Tureen-Truncated": str(truncated).lower(),
        "Vary": "Accept, Accept-Encoding, Authorization",
        "Cache-Control": "private, no-cache",
    }
    if answer.note is not None:
        # Headers are ASCII.
        headers["Tureen-Note"] = quote(answer.note, safe=" '\":,;()")
    for name, bound in (("Begin", answer.window.begin), ("End", answer.window.end)):
        if bound is not None:
            headers[f"Tureen-Window-{name}"] = bound.isoformat()
    return headers


def _etag(tagged: Iterable[str], content: Iterable[bytes]) -> str:
    """A weak tag: equal answers have equal tags, though the window in their headers may have moved."""
    digest = hashlib.blake2b("\n".join(tagged).encode(), digest_size=16)
    for part in content:
        digest.update(part)
    return f'W/"{digest.hexdigest()}"'


def _canonical_chunks(table: pa.Table) -> Iterator[bytes]:
    # As one Arrow chunk: the same rows may come from other runs the next time.
    return _arrow_chunks(table.combine_chunks())


def _respond(
    response_format: ResponseFormat, headers: dict[str, str], etag: str | None, chunks: Iterable[bytes]
) -> Rendered:
    """Finish a response; a list of one chunk is sent as a whole."""
    if etag is not None:
        headers["ETag"] = etag
        if response_format.if_none_match is not None and _matches(response_format.if_none_match, etag):
            return Rendered(headers, None)
    media_type = response_format.media_type
    headers["Content-Type"] = f"{media_type}; charset=utf-8" if media_type == CSV else media_type
    whole = chunks[0] if isinstance(chunks, list) else None
    if response_format.gzip and (whole is None or len(whole) >= MIN_GZIP_BYTES):
        headers["Content-Encoding"] = "gzip"
        compressed = _compressed(chunks)
        return Rendered(headers, compressed if whole is None else b"".join(compressed))
    return Rendered(headers, iter(chunks) if whole is None else whole)


def _matches(if_none_match: str, etag: str) -> bool:
    """Whether an If-None-Match header contains a tag."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag.removeprefix("W/") in tags


def _compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for chunk in chunks:
        yield compressor.compress(chunk) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()


def _chunks(media_type: str, table: pa.Table, head: Mapping[str, Any], tail: Mapping[str, Any]) -> Iterator[bytes]:
    if media_type == ARROW:
        return _arrow_chunks(table)
    if media_type == XML:
        return _xml_chunks(table)
    return _csv_chunks(table) if media_type == CSV else _json_chunks(table, head, tail)


def _json_chunks(table: pa.Table, head: Mapping[str, Any], tail: Mapping[str, Any]) -> Iterator[bytes]:
    yield _json_start(head)
    for start in range(0, table.num_rows, CHUNK_ROWS):
        yield (b"," if start else b"") + _json_rows(table.slice(start, CHUNK_ROWS))
    yield _json_end(tail)


def _json_start(head: Mapping[str, Any]) -> bytes:
    return orjson.dumps(head)[:-1] + b',"rows":['


def _json_end(tail: Mapping[str, Any]) -> bytes:
    return b"]," + orjson.dumps(tail)[1:] if tail else b"]}"


def _json_rows(table: pa.Table) -> bytes:
    """The rows as JSON objects, separated by commas."""
    names, columns = table.column_names, [_values(column) for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return _json(rows)[1:-1]


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_NAIVE_UTC)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column as JSON values: values that JSON lacks become text, and timestamps lose their zone, which is UTC.

    Uses numpy where that gives the same values: Arrow's `to_pylist` of 25 rows takes longer than computing the answer.
    """
    if pa.types.is_timestamp(column.type):
        timestamps = column.to_numpy()
        if _outside_calendar(timestamps.view(np.int64), column.null_count):
            return list(_timestamp_texts(column).to_pylist())
        return list(timestamps.tolist())
    if pa.types.is_list(column.type):
        # An ARRAY of an answer is never NULL, nor are its elements.
        elements = _values(pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type))
        ends = np.cumsum(pc.list_value_length(column).to_numpy()).tolist()
        return [elements[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    plain = pa.types.is_primitive(column.type) and not pa.types.is_date(column.type) and not column.null_count
    values: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    if pa.types.is_floating(column.type) and not (plain and np.isfinite(values).all()):
        return [_NON_FINITE.get(str(value), value) for value in values]
    return values


_FIRST, _LAST = np.array(["0001-01-01", "9999-12-31T23:59:59.999999"], "datetime64[us]").view(np.int64)


def _outside_calendar(micros: npt.NDArray[np.int64], nulls: int) -> bool:
    """Whether any timestamp is outside of Python's calendar; NULL is the least integer."""
    return bool(np.any(micros > _LAST) or np.count_nonzero(micros < _FIRST) > nulls)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON values."""
    return {
        key: _NON_FINITE[str(value)] if isinstance(value, float) and value - value != 0 else value
        for key, value in row.items()
    }


def plain_pattern(punctuation: Punctuation) -> dict[str, Any]:
    """A punctuation as JSON values: a value, a list, or the ends of a range for each column."""
    parts = punctuation.as_json().items()
    return {name: _plain_part(part) for name, part in parts}


def _plain_part(part: Any) -> Any:
    if isinstance(part, dict):
        return plain_row(part)
    return [plain_row({"": value})[""] for value in part] if isinstance(part, list) else plain_row({"": part})[""]


_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _with_texts(table: pa.Table) -> pa.Table:
    """Convert columns that Arrow's CSV writer cannot write as documented: timestamps to ISO text, lists to JSON."""
    for column_index, column in enumerate(table.columns):
        texts = None
        if pa.types.is_timestamp(column.type):
            texts = _timestamp_texts(column)
        elif pa.types.is_list(column.type):
            texts = pa.array([_json(value).decode() for value in _values(column)], pa.string())
        if texts is not None:
            table = table.set_column(column_index, table.schema.field(column_index).name, texts)
    return table


def _timestamp_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.strftime(column, format="%Y-%m-%dT%H:%M:%S+00:00")


def _xml_chunks(table: pa.Table) -> Iterator[bytes]:
    pieces = xml_pieces(table)
    while part := "".join(islice(pieces, CHUNK_ROWS)):
        yield part.encode()


def _csv_chunks(table: pa.Table) -> Iterator[bytes]:
    yield _csv_bytes(table.slice(0, CHUNK_ROWS), header=True)
    for start in range(CHUNK_ROWS, table.num_rows, CHUNK_ROWS):
        yield _csv_bytes(table.slice(start, CHUNK_ROWS), header=False)


def _csv_bytes(table: pa.Table, *, header: bool) -> bytes:
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(_with_texts(table), sink, arrow_csv.WriteOptions(include_header=header))
    text: bytes = sink.getvalue().to_pybytes()
    return text


class _ChunkSink:
    """A file object that Arrow writes to, drained chunk by chunk."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def drain(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _arrow_chunks(table: pa.Table) -> Iterator[bytes]:
    sink = _ChunkSink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=8 * CHUNK_ROWS):
            writer.write_batch(batch)
            yield sink.drain()
    yield sink.drain()
