"""Subqueries beside groups: values in the select list and in HAVING that are the same for all rows of a group.

Such a value is computed for each row, before these are grouped, and is the maximum of its group. So a subquery may use
the keys of GROUP BY, and no other columns of the query around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.join import parse_field
from tureen.language.binding.aggregate_types import BoundAggregate
from tureen.language.binding.aggregates import has_aggregate
from tureen.language.binding.draft import Draft
from tureen.language.binding.grouping import Groups
from tureen.language.source import offset_of
from tureen.language.tree import Expr, Ref, children, columns_in
from tureen.query import aggregate_name
from tureen.schema import Column


def value_beside(draft: Draft, groups: Groups, value_of: Callable[[Any], Expr], node: exp.Expression) -> Expr:
    """The column of a group with the value of a subquery, which `value_of` binds for its rows."""
    at = offset_of(node)
    if has_aggregate(node):
        raise Unsupported(
            "an aggregate before IN with a query is not supported",
            hint="write SELECT … FROM (SELECT … AS value … GROUP BY …) WHERE value IN (SELECT …)",
            location=draft.source.node(node),
        )
    value = value_of(node)
    if any(_occurs(value, key) for key in groups.keys):
        return value
    _check_keys(draft, groups, value, at)
    assert value.type is not None
    aggregate = BoundAggregate("max", (value,), value.type)
    if aggregate not in groups.aggregates:
        groups.aggregates.append(aggregate)
    return Ref(Column(aggregate_name(groups.aggregates.index(aggregate)), value.type), at)


def _occurs(value: Expr, key: Expr) -> bool:
    """Whether a value is a key, or a part of it."""
    return value == key or any(_occurs(value, child) for child in children(key))


def _check_keys(draft: Draft, groups: Groups, value: Expr, at: int) -> None:
    """Raise if the subqueries of a value use columns that are no keys."""
    keys = {key.column.name for key in groups.keys if isinstance(key, Ref)}
    own = {relation.number for relation in draft.relations}
    for name in _columns_used(draft, value):
        field = parse_field(name)
        if field.input in own and name not in keys:
            raise SqlError(
                f"a subquery uses column '{field.column}', which is not in GROUP BY",
                hint=f"add {field.column} to GROUP BY, or write the subquery within an aggregate",
                location=draft.source.location(at),
            )


def _columns_used(draft: Draft, value: Expr) -> Iterable[str]:
    """The columns that a value is computed from, with those of its subqueries."""
    for name in columns_in(value):
        yield name
        yield from draft.laterals.get(parse_field(name).input, ())
