"""What a query needs of each stream that it reads: the rows that its answer is computed from.

Each input is planned by itself. Joins, groups, windows and expressions are evaluated where the query is registered, so
that its answer is the same as if the whole stream were there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tureen.query import Query, QueryBlock, RelationKind, SetOperation
from tureen.schema import Schema
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import shippable


def stream_needs(query: Query, schema_of: Callable[[str], Schema]) -> list[Properties | None]:
    """The rows that a query needs of each of its leaves, in order; None for a table.

    A window that counts tuples counts those that the query does not select, too, so it needs them all. Only a query of
    one stream tells which columns it reads; of a join, all are needed.
    """
    return list(_needs(query, schema_of))


def _needs(block: QueryBlock, schema_of: Callable[[str], Schema]) -> Iterator[Properties | None]:
    if isinstance(block, SetOperation):
        yield from _needs(block.left, schema_of)
        yield from _needs(block.right, schema_of)
        return
    for entry in block.inputs:
        if entry.block is not None:
            yield from _needs(entry.block, schema_of)
        elif entry.kind is RelationKind.STREAM:
            schema = schema_of(entry.relation)
            counts = entry.window.span(0).counts_rows or (block.steps is not None and block.steps.rows)
            columns = frozenset(schema.names) if block.joins else frozenset(block.columns)
            needed = shippable(schema, Properties(entry.relation, entry.clause, columns))
            yield Properties(entry.relation, (), needed.columns) if counts else needed
        elif entry.kind is RelationKind.TABLE:
            yield None
