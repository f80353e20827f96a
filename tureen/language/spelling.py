"""Values as SQL literals."""

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


def sql_literal(value: Any, type_: Type) -> str:
    """A value as a SQL literal.

    >>> sql_literal("text", Type.parse("STRING")), sql_literal(None, Type.parse("INT"))
    ("'text'", 'CAST(NULL AS INT)')
    >>> sql_literal(2.5, Type.parse("DOUBLE"))
    '2.5D'
    """
    if value is None:
        return f"CAST(NULL AS {type_.sql})"
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
        return f"CAST('{value}' AS {type_.sql})"
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value) if math.isfinite(value) else f"{value:+}inity"
        return f"{text}D" if type_.kind is Kind.DOUBLE and math.isfinite(value) else f"CAST('{text}' AS {type_.sql})"
    return f"{value}{_SUFFIXES.get(type_.kind, '')}"


def sql_literals(columns: Schema, row: Mapping[str, Any]) -> dict[str, str]:
    """The values of a row as SQL literals, by column name in lower case."""
    return {column.name.lower(): sql_literal(row[column.name], column.type) for column in columns.columns}
