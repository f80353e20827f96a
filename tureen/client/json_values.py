"""Conversion between JSON and Arrow bodies and the values that an embedded pot returns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import httpx
import pyarrow as pa

from tureen.results.answer import Answer, Bounds
from tureen.schema import type_of_arrow


def parse_timestamp(text: str) -> datetime:
    """Parse ISO 8601 text; without a zone it means UTC.

    >>> parse_timestamp("2026-01-31T12:00:00Z")
    datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    timestamp = datetime.fromisoformat(text)
    return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp.astimezone(UTC)


def timestamp_text(timestamp: datetime) -> str:
    """Format a timestamp as ISO 8601; without a zone it means UTC."""
    return (timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp).isoformat()


def with_datetimes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with its timestamps (`registered_at`, `changed_at`, …) parsed."""
    return {
        name: parse_timestamp(value) if name.endswith("_at") and isinstance(value, str) else value
        for name, value in entry.items()
    }


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Serialize a value as JSON: timestamps, dates, decimals, NaN and the infinities become strings.

    >>> json_text({"ts": datetime(2026, 1, 31, tzinfo=UTC), "p": Decimal("1.50"), "x": float("nan")})
    '{"ts": "2026-01-31T00:00:00+00:00", "p": "1.50", "x": "NaN"}'
    """
    return json.dumps(_json_value(value), indent=indent, ensure_ascii=False)


def _json_value(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime():
            return timestamp_text(value)
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
    content: bytes = sink.getvalue().to_pybytes()
    return content


def arrow_table(content: bytes) -> pa.Table:
    """The rows of an Arrow IPC stream."""
    return pa.ipc.open_stream(pa.BufferReader(content)).read_all()


def read_answer(response: httpx.Response) -> Answer:
    """The answer of a response: rows in its Arrow body, everything else in its headers."""
    headers = response.headers
    begin, end = headers.get("Tureen-Window-Begin"), headers.get("Tureen-Window-End")
    return Answer(
        arrow_table(response.content),
        Bounds(None if begin is None else parse_timestamp(begin), None if end is None else parse_timestamp(end)),
        headers["Tureen-Position"],
        headers.get("Tureen-Complete", "true").lower() == "true",
        unquote(headers["Tureen-Note"]) if "Tureen-Note" in headers else None,
    )


def type_name(kind: pa.DataType) -> str:
    """The SQL name of an Arrow type.

    >>> type_name(pa.int32()), type_name(pa.decimal128(9, 2))
    ('INT', 'DECIMAL(9,2)')
    """
    sql_type = type_of_arrow(kind)
    return str(kind) if sql_type is None else sql_type.sql


RowReader = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Converts a JSON row to the column types of its query."""


def row_reader(schema: pa.Schema) -> RowReader:
    """The reader for JSON rows of that schema."""
    readers = {field.name: _value_reader(field.type) for field in schema}

    def read(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: None if value is None else readers[name](value) for name, value in row.items()}

    return read


def _value_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_timestamp(kind):
        return parse_timestamp
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_decimal(kind):
        return lambda value: Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_floating(kind):
        # NaN and the infinities are strings, as JSON has no numbers for them.
        return float
    return lambda value: value
