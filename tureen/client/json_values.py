"""Values as they are written in JSON, made into what an embedded pot gives, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import httpx
import pyarrow as pa

from tureen.results.answer import Answer, Bounds
from tureen.schema import type_of_arrow


def moment(text: str) -> datetime:
    """An instant from its ISO text.

    >>> moment("2026-01-31T12:00:00Z")
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def moment_text(now: datetime) -> str:
    """An instant as ISO text; without a zone it means UTC."""
    return (now.replace(tzinfo=UTC) if now.tzinfo is None else now).isoformat()


def dated(told: Mapping[str, Any]) -> dict[str, Any]:
    """An object whose moments (`registered_at`, `changed_at`, …) are datetimes again."""
    return {
        name: moment(value) if name.endswith("_at") and isinstance(value, str) else value
        for name, value in told.items()
    }


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON: moments and dates as ISO texts, decimals as texts, and no NaN.

    >>> json_text({"ts": datetime(2026, 1, 31, tzinfo=UTC), "p": Decimal("1.50"), "x": float("nan")})
    '{"ts": "2026-01-31T00:00:00+00:00", "p": "1.50", "x": "NaN"}'
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def arrow_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """Rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def arrow_table(content: bytes) -> pa.Table:
    """The rows of an Arrow IPC stream."""
    return pa.ipc.open_stream(pa.BufferReader(content)).read_all()


def answer_of(response: httpx.Response) -> Answer:
    """The answer that came as an Arrow stream, with what is not rows in headers."""
    headers = response.headers
    begin, end = headers.get("Tureen-Window-Begin"), headers.get("Tureen-Window-End")
    return Answer(
        arrow_table(response.content),
        Bounds(None if begin is None else moment(begin), None if end is None else moment(end)),
        headers["Tureen-Position"],
        headers.get("Tureen-Complete", "true").lower() == "true",
    )


def type_name(kind: pa.DataType) -> str:
    """The SQL type that an Arrow type stands for.

    >>> type_name(pa.int32()), type_name(pa.decimal128(9, 2))
    ('INT', 'DECIMAL(9,2)')
    """
    known = type_of_arrow(kind)
    return str(kind) if known is None else known.sql


Reader = Callable[[Mapping[str, Any]], dict[str, Any]]


def row_reader(schema: pa.Schema) -> Reader:
    """What makes a row of a change, whose values are those of JSON, into one of the query's types."""
    readers = {field.name: _reader(field.type) for field in schema}

    def read(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: None if value is None else readers[name](value) for name, value in row.items()}

    return read


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_timestamp(kind):
        return moment
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_decimal(kind):
        return lambda value: Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_floating(kind):
        # NaN and the infinities are texts, as JSON has no numbers for them.
        return float
    return lambda value: value
