"""Checks of what a new stream declares: a unique key, a lateness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tureen.closed.rules import NO_RULES, Rules
from tureen.errors import InvalidSchema, nearest
from tureen.schema import Schema


def check_rules(schema: Schema | None, unique: Any, lateness: int | None, source: object) -> Rules:
    """The rules of a new stream; `schema` is None for a derived one. Raises InvalidSchema if they do not fit it."""
    if unique is None and lateness is None:
        return NO_RULES
    declared = "a unique key" if unique is not None else "a lateness"
    if schema is None:
        raise InvalidSchema(f"a stream that is derived from a query cannot have {declared}")
    if source is not None:
        raise InvalidSchema(
            f"a stream with a source cannot have {declared}",
            hint="rows are checked as they are pushed; a source writes them without a push",
        )
    if lateness is not None and schema.time is None:
        raise InvalidSchema("a lateness needs a time column", hint="name it with time=, or TIME in SQL")
    if lateness is not None and lateness < 0:
        raise InvalidSchema("a lateness must not be negative")
    return Rules(() if unique is None else _columns(schema, unique), lateness)


def _columns(schema: Schema, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidSchema("unique must be a list of columns", hint='such as unique=["item"]')
    if not names:
        raise InvalidSchema("a unique key needs at least one column")
    columns: list[str] = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidSchema(f"unknown column '{name}' in the unique key", hint=nearest(name, schema.names))
        if column.name in columns:
            raise InvalidSchema(f"duplicate column '{column.name}' in the unique key")
        columns.append(column.name)
    return tuple(columns)
