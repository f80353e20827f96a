"""Which tuples have rows in an answer: the query itself, traced by a column `id` that its inputs must have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tureen.join import Field, field_name, visible_leaves
from tureen.query import Aggregate, Expression, Output, Query, aggregate_name
from tureen.schema import Kind, Type, array_of
from tureen.testing.oracle import Oracle
from tureen.testing.values import identity, normalized

_ID = Type(Kind.BIGINT)


def answered_ids(oracle: Oracle, query: Query, number: int, now: int | None) -> set[int]:
    """The ids of an input's tuples that have a row in a query's answer; with groups, that count in a row of it.

    With DISTINCT, a tuple counts if the answer has a row that equals its row.
    """
    if number not in visible_leaves(query.source):
        return set()
    traced = _traced(query, number)
    if not query.distinct:
        return _ids(row["id"] for row in oracle.register(traced).invoke(now))
    named = tuple(replace(output, name=f"c{index}") for index, output in enumerate(query.outputs))
    kept = {_key(row) for row in oracle.register(replace(query, outputs=named)).invoke(now)}
    every = replace(traced, outputs=(*named, *traced.outputs), distinct=False, limit=None, offset=0)
    rows = oracle.register(every).invoke(now)
    return _ids(row["id"] for row in rows if _key({name: row[name] for name in row if name != "id"}) in kept)


def _traced(query: Query, number: int) -> Query:
    """A query whose only output is the id of an input or, with groups, the ids of each group."""
    name = field_name(Field(number, "id"))
    own = Expression(f'"{name}"', _ID, (name,), name)
    grouping = query.grouping
    if grouping is None:
        return replace(query, outputs=(Output("id", own),))
    ids = Aggregate("collect_list", (own,), array_of(_ID))
    column = aggregate_name(len(grouping.aggregates))
    output = Output("id", Expression(f'"{column}"', ids.type, (column,), column))
    return replace(query, outputs=(output,), grouping=replace(grouping, aggregates=(*grouping.aggregates, ids)))


def _ids(values: Any) -> set[int]:
    """The ids in rows, of which some have a list of ids or, for a row of NULLs, none."""
    ids: set[int] = set()
    for value in values:
        ids.update(value if isinstance(value, list) else [] if value is None else [value])
    return ids


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(identity(normalized(value)) for value in row.values())
