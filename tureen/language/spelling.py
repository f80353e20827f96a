"""Values as they are written in SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tureen.language.moments import moment_text
from tureen.schema import Kind, Schema, Type
from tureen.window import to_micros

_SUFFIXES = {Kind.TINYINT: "Y", Kind.SMALLINT: "S", Kind.BIGINT: "L"}


def spell(value: Any, kind: Type) -> str:
    """A value as it is written in SQL.

    >>> spell("text", Type.parse("STRING")), spell(None, Type.parse("INT")), spell(2.5, Type.parse("DOUBLE"))
    ("'text'", 'CAST(NULL AS INT)', '2.5D')
    """
    if value is None:
        return f"CAST(NULL AS {kind.sql})"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{moment_text(to_micros(value))}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, Decimal):
        return f"CAST('{value}' AS {kind.sql})"
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value) if math.isfinite(value) else f"{value:+}inity"
        return f"{text}D" if kind.kind is Kind.DOUBLE and math.isfinite(value) else f"CAST('{text}' AS {kind.sql})"
    return f"{value}{_SUFFIXES.get(kind.kind, '')}"


def spelt(columns: Schema, row: Mapping[str, Any]) -> dict[str, str]:
    """A row of values as they are written in SQL, by their names in lower case."""
    return {column.name.lower(): spell(row[column.name], column.type) for column in columns.columns}
