"""Values as SQL literals, and names as SQL identifiers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tureen.language.moments import day_text, moment_text, read_date, read_timestamp
from tureen.predicate import Key
from tureen.schema import Kind, Schema, Type
from tureen.window import to_micros

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DAYS = read_date("0001-01-01") or 0, read_date("9999-12-31") or 0
_MOMENTS = read_timestamp("0001-01-01") or 0, read_timestamp("9999-12-31 23:59:59.999999") or 0
"""The first and the last values that can be written. The normal form of > 9999-12-31 has the value after the last."""

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


def spell_name(name: str) -> str:
    """A name as an identifier, in backquotes if it needs them.

    >>> spell_name("price"), spell_name("odd `name`")
    ('price', '`odd ``name```')
    """
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def key_literal(key: Key, type_: Type) -> str:
    """A constant of the key domain of a type (see `tureen.predicate`), for people: without suffixes and casts.

    >>> key_literal(1234, Type.parse("DECIMAL(5,2)")), key_literal(30, Type.parse("DATE"))
    ('12.34', "DATE '1970-01-31'")
    """
    match type_:
        case Type(kind=Kind.FLOAT | Kind.DOUBLE):
            return str(key).replace("nan", "NaN").replace("inf", "Infinity")
        case Type(kind=Kind.STRING):
            return sql_literal(key, type_)
        case Type(kind=Kind.BOOLEAN):
            return "TRUE" if key else "FALSE"
        case Type(kind=Kind.DATE):
            return _in_range(int(key), _DAYS, lambda day: f"DATE '{day_text(day)}'", "DAY")
        case Type(kind=Kind.TIMESTAMP):
            return _in_range(int(key), _MOMENTS, _timestamp, "MICROSECOND")
        case Type(kind=Kind.DECIMAL, scale=scale):
            return str(Decimal(int(key)).scaleb(-scale))
    return str(key)


def _timestamp(micros: int) -> str:
    return f"TIMESTAMP '{moment_text(micros).removesuffix('.000000')}'"


def _in_range(key: int, bounds: tuple[int, int], text_of: Callable[[int], str], unit: str) -> str:
    """The text of a key; of one that cannot be written, its distance from the nearest that can."""
    nearest = min(max(key, bounds[0]), bounds[1])
    if nearest == key:
        return text_of(key)
    return f"{text_of(nearest)} {'+' if key > nearest else '-'} INTERVAL '{abs(key - nearest)}' {unit}"
