"""Answers as bytes: JSON, CSV or Arrow, whole where they are small and in pieces where they are large."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from tureen.errors import TooLarge
from tureen.results.answer import Answer
from tureen.schema import type_of_arrow
from tureen.service.bodies import ARROW, CSV, JSON
from tureen.service.error_responses import Refusal

PIECE_ROWS = 8_192
"""How many rows are written at a time; an answer of no more is written whole."""

PIECE_BYTES = 4 << 20
"""An answer of more bytes is sent in pieces, however few its rows are."""

WORTH_PACKING = 1_024
"""A body of fewer bytes is not packed."""

_ALIASES = {"*/*": JSON, "application/*": JSON, "text/*": CSV}


@dataclass(frozen=True)
class Wanted:
    """The form that a client wants an answer in."""

    kind: str
    packed: bool
    etag: str | None = None
    limit: int | None = None
    most: int = 1 << 62
    at: str = ""
    """What the request says about NOW, which belongs to what its ETag is about."""


@dataclass(frozen=True)
class Rendered:
    """An answer that is ready to be sent; `body` is None where the client has it already."""

    headers: dict[str, str]
    body: bytes | Iterator[bytes] | None


def wanted_kind(accept: str | None) -> str:
    """The media type to answer in, by an Accept header.

    >>> wanted_kind("text/csv;q=0.5, application/vnd.apache.arrow.stream"), wanted_kind("*/*")
    ('application/vnd.apache.arrow.stream', 'application/json')
    """
    if not accept or accept == "*/*":
        return JSON
    best, found = 0.0, ""
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = next((_weight(one[2:]) for one in parameters if one.startswith("q=")), 1.0)
        kind = _ALIASES.get(name, name)
        if kind in (JSON, CSV, ARROW) and weight > best:
            best, found = weight, kind
    if not found:
        raise Refusal(406, "the answer cannot be had in that form", hint=f"accept {JSON}, {CSV} or {ARROW}")
    return found


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def takes_gzip(accept_encoding: str | None) -> bool:
    """Whether a client takes gzip.

    >>> takes_gzip("gzip, br"), takes_gzip("gzip;q=0"), takes_gzip(None)
    (True, False, False)
    """
    for part in (accept_encoding or "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "x-gzip", "*"):
            return _weight(weight.partition("=")[2] or "1") > 0
    return False


def render(answer: Answer, wanted: Wanted, lead: Mapping[str, Any] | None = None) -> Rendered:
    """An answer in the form that is wanted; `lead` goes before the rest of a JSON body."""
    table, truncated = answer.table, False
    if wanted.limit is not None and table.num_rows > wanted.limit:
        table, truncated = table.slice(0, wanted.limit), True
    if table.num_rows > wanted.most:
        raise TooLarge(
            f"the answer has {table.num_rows:,} rows", hint=f"ask for ?limit= of at most {wanted.most:,}, or for less"
        )
    headers = _headers(answer, truncated)
    head = {**(lead or {}), "columns": columns_of(table.schema)}
    tail = {
        "window": {"begin": _moment(answer.window.begin), "end": _moment(answer.window.end)},
        "position": answer.position,
        "complete": answer.complete,
        "truncated": truncated,
    }
    small = table.num_rows <= PIECE_ROWS and table.nbytes <= PIECE_BYTES
    told = [wanted.kind, headers["Tureen-Complete"], headers["Tureen-Truncated"], str(head["columns"])]
    if wanted.at:
        told += [wanted.at, str(answer.window)]
    if not small:
        return _send(wanted, headers, _etag(told, _digested(table)), _pieces(wanted.kind, table, head, tail))
    if wanted.kind == JSON:
        rows = _json_rows(table)
        whole = [_opened(head), rows, _closed(tail)]
        return _send(wanted, headers, _etag(told, [rows]), [b"".join(whole)])
    body = b"".join(_pieces(wanted.kind, table, head, tail))
    return _send(wanted, headers, _etag(told, [body]), [body])


def render_table(table: pa.Table, wanted: Wanted) -> Rendered:
    """The rows of a table in the form that is wanted."""
    return _send(wanted, {}, None, _pieces(wanted.kind, table, {"columns": columns_of(table.schema)}, {}))


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The names and types of the columns, as SQL writes them."""
    return [{"name": field.name, "type": _sql_type(field.type)} for field in schema]


def _sql_type(found: pa.DataType) -> str:
    known = type_of_arrow(found)
    return str(found).upper() if known is None else known.sql


def _moment(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _headers(answer: Answer, truncated: bool) -> dict[str, str]:
    headers = {
        "Tureen-Position": answer.position,
        "Tureen-Complete": str(answer.complete).lower(),
        "Tureen-Truncated": str(truncated).lower(),
        "Vary": "Accept, Accept-Encoding, Authorization",
        "Cache-Control": "private, no-cache",
    }
    for name, bound in (("Begin", answer.window.begin), ("End", answer.window.end)):
        if bound is not None:
            headers[f"Tureen-Window-{name}"] = bound.isoformat()
    return headers


def _etag(told: Iterable[str], content: Iterable[bytes]) -> str:
    """A weak tag: what it stands for is the same, though the window may have moved and been told in other headers."""
    digest = hashlib.blake2b("\n".join(told).encode(), digest_size=16)
    for part in content:
        digest.update(part)
    return f'W/"{digest.hexdigest()}"'


def _digested(table: pa.Table) -> Iterator[bytes]:
    # In one chunk, as the same rows may come from other runs the next time.
    return _arrow_pieces(table.combine_chunks())


def _send(wanted: Wanted, headers: dict[str, str], etag: str | None, pieces: Iterable[bytes]) -> Rendered:
    if etag is not None:
        headers["ETag"] = etag
        if wanted.etag is not None and _seen(wanted.etag, etag):
            return Rendered(headers, None)
    headers["Content-Type"] = f"{wanted.kind}; charset=utf-8" if wanted.kind == CSV else wanted.kind
    whole = pieces[0] if isinstance(pieces, list) else None
    if wanted.packed and (whole is None or len(whole) >= WORTH_PACKING):
        headers["Content-Encoding"] = "gzip"
        packed = _packed(pieces)
        return Rendered(headers, packed if whole is None else b"".join(packed))
    return Rendered(headers, iter(pieces) if whole is None else whole)


def _seen(known: str, etag: str) -> bool:
    """Whether an If-None-Match header names that tag."""
    tags = [one.strip().removeprefix("W/") for one in known.split(",")]
    return "*" in tags or etag.removeprefix("W/") in tags


def _packed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def _pieces(kind: str, table: pa.Table, head: Mapping[str, Any], tail: Mapping[str, Any]) -> Iterator[bytes]:
    if kind == ARROW:
        return _arrow_pieces(table)
    return _csv_pieces(table) if kind == CSV else _json_pieces(table, head, tail)


def _json_pieces(table: pa.Table, head: Mapping[str, Any], tail: Mapping[str, Any]) -> Iterator[bytes]:
    yield _opened(head)
    for start in range(0, table.num_rows, PIECE_ROWS):
        yield (b"," if start else b"") + _json_rows(table.slice(start, PIECE_ROWS))
    yield _closed(tail)


def _opened(head: Mapping[str, Any]) -> bytes:
    return orjson.dumps(head)[:-1] + b',"rows":['


def _closed(tail: Mapping[str, Any]) -> bytes:
    return b"]," + orjson.dumps(tail)[1:] if tail else b"]}"


def _json_rows(table: pa.Table) -> bytes:
    """The rows as JSON objects with commas between them."""
    names, columns = table.column_names, [_values(column) for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return _json(rows)[1:-1]


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=str, option=orjson.OPT_NAIVE_UTC)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column as values that JSON has: what it lacks is text, and instants are without their UTC.

    By way of numpy where that gives the same: Arrow's own list of 25 rows takes longer than computing the answer.
    """
    if pa.types.is_timestamp(column.type):
        instants = column.to_numpy()
        if _beyond_calendar(instants.view(np.int64), column.null_count):
            return list(_time_texts(column).to_pylist())
        return list(instants.tolist())
    if pa.types.is_list(column.type):
        # An ARRAY of an answer is never NULL, nor is a value in it.
        elements = _values(pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type))
        ends = np.cumsum(pc.list_value_length(column).to_numpy()).tolist()
        return [elements[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    plain = pa.types.is_primitive(column.type) and not pa.types.is_date(column.type) and not column.null_count
    values: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    if pa.types.is_floating(column.type) and not (plain and np.isfinite(values).all()):
        return [_NAMES.get(str(value), value) for value in values]
    return values


_FIRST, _LAST = np.array(["0001-01-01", "9999-12-31T23:59:59.999999"], "datetime64[us]").view(np.int64)


def _beyond_calendar(micros: npt.NDArray[np.int64], nulls: int) -> bool:
    """Whether there are instants that Python's calendar does not reach; those that are NULL are the least number."""
    return bool(np.any(micros > _LAST) or np.count_nonzero(micros < _FIRST) > nulls)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """One row as values that JSON has."""
    return {
        key: _NAMES[str(value)] if isinstance(value, float) and value - value != 0 else value
        for key, value in row.items()
    }


_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _with_texts(table: pa.Table) -> pa.Table:
    """The table with texts for what Arrow's CSV has no form or another one for: instants, and lists, as JSON."""
    for place, column in enumerate(table.columns):
        texts = None
        if pa.types.is_timestamp(column.type):
            texts = _time_texts(column)
        elif pa.types.is_list(column.type):
            texts = pa.array([_json(value).decode() for value in _values(column)], pa.string())
        if texts is not None:
            table = table.set_column(place, table.schema.field(place).name, texts)
    return table


def _time_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.strftime(column, format="%Y-%m-%dT%H:%M:%S+00:00")


def _csv_pieces(table: pa.Table) -> Iterator[bytes]:
    yield _csv_bytes(table.slice(0, PIECE_ROWS), header=True)
    for start in range(PIECE_ROWS, table.num_rows, PIECE_ROWS):
        yield _csv_bytes(table.slice(start, PIECE_ROWS), header=False)


def _csv_bytes(table: pa.Table, *, header: bool) -> bytes:
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(_with_texts(table), sink, arrow_csv.WriteOptions(include_header=header))
    found: bytes = sink.getvalue().to_pybytes()
    return found


class _Sink:
    """What Arrow writes into; what was written is taken out piece by piece."""

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

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _arrow_pieces(table: pa.Table) -> Iterator[bytes]:
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=8 * PIECE_ROWS):
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()
