"""Checks of what a new stream declares: a unique key, a lateness, rows that are the last with their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tureen.closed.rules import NO_RULES, LastRows, PatternRows, Rules
from tureen.errors import InvalidSchema, nearest
from tureen.schema import Kind, Schema


def check_rules(
    schema: Schema | None,
    unique: Any,
    lateness: int | None,
    punctuate: Any = None,
    key: Any = None,
    *,
    has_headers: bool = False,
) -> Rules:
    """The rules of a new stream; `schema` is None for a derived one. Raises InvalidSchema if they do not fit it.

    With `has_headers`, the source of the stream gives headers, of which `punctuate` may name one.
    """
    if unique is None and lateness is None and punctuate is None and key is None:
        return NO_RULES
    names = {"a unique key": unique, "a lateness": lateness}
    declared = next((name for name, value in names.items() if value is not None), "rows that punctuate it")
    if schema is None:
        raise InvalidSchema(f"a stream that is derived from a query cannot have {declared}")
    if lateness is not None and schema.time is None:
        raise InvalidSchema("a lateness needs a time column", hint="name it with time=, or TIME in SQL")
    if lateness is not None and lateness < 0:
        raise InvalidSchema("a lateness must not be negative")
    columns = () if unique is None else _columns(schema, unique, "unique")
    last_rows, pattern_rows = _punctuating_rows(schema, punctuate, key, has_headers)
    return Rules(columns, lateness, last_rows, pattern_rows)


def _punctuating_rows(
    schema: Schema, punctuate: Any, key: Any, has_headers: bool
) -> tuple[LastRows | None, PatternRows | None]:
    """How rows punctuate their stream: as the last with a key, or with patterns."""
    if punctuate is None and key is None:
        return None, None
    if punctuate is None:
        raise InvalidSchema("punctuate and key belong together", hint=_BY_KEY)
    column = schema.find(punctuate) if isinstance(punctuate, str) else None
    if column is None and (not has_headers or not isinstance(punctuate, str)):
        hint = nearest(punctuate, schema.names) if isinstance(punctuate, str) else "punctuate is the name of a column"
        raise InvalidSchema(f"unknown column '{punctuate}' in punctuate", hint=hint)
    if column is not None and column.type.kind is Kind.BOOLEAN:
        return _last_rows(schema, column.name, key), None
    if column is not None and column.type.kind is not Kind.STRING:
        raise InvalidSchema(f"column '{column.name}' of punctuate must be BOOLEAN or STRING, got {column.type.sql}")
    rows = PatternRows(punctuate, is_header=True) if column is None else PatternRows(column.name)
    if key is not None:
        raise InvalidSchema(f"the {rows.shown} of punctuate has whole patterns, and no key", hint="leave out key")
    return None, rows


def _last_rows(schema: Schema, column: str, key: Any) -> LastRows:
    if key is None:
        raise InvalidSchema("punctuate and key belong together", hint=_BY_KEY)
    columns = _columns(schema, key, "key")
    if column in columns:
        raise InvalidSchema(f"column '{column}' of punctuate cannot be part of the key")
    return LastRows(column, columns)


_BY_KEY = 'such as punctuate="closed", key=["item"]: a row with closed = true is the last with its item'


def _columns(schema: Schema, names: Any, argument: str) -> tuple[str, ...]:
    of = "unique key" if argument == "unique" else "key"
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidSchema(f"{argument} must be a list of columns", hint=f'such as {argument}=["item"]')
    if not names:
        raise InvalidSchema(f"a {of} needs at least one column")
    columns: list[str] = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise InvalidSchema(f"unknown column '{name}' in the {of}", hint=nearest(name, schema.names))
        if column.name in columns:
            raise InvalidSchema(f"duplicate column '{column.name}' in the {of}")
        columns.append(column.name)
    return tuple(columns)
