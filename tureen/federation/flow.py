"""Flows: a selection and projection of a stream, written as a query, that a peer is asked for.

The text is SQL that the sender binds against its own stream, so that a peer cannot ask for anything but tuples of that
stream. Only conditions that cannot fail on a tuple are part of a flow; the others are evaluated where the query is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tureen.errors import TureenError, Unsupported
from tureen.language import bind_query
from tureen.language.predicates.factor_text import factor_text
from tureen.predicate import AllOf, AnyOf, Clause, Compare, IsNull, Like, Opaque, Predicate, Within
from tureen.query import NamedRelation, Query, RelationKind
from tureen.schema import Column, Schema
from tureen.sharing.properties import Properties
from tureen.window import WHOLE

LONGEST_CONDITIONS = 16_000
"""The most characters of the conditions of a flow, which is part of an address: the longest ones are left out."""


@dataclass(frozen=True)
class FlowSelection:
    """A selection and projection of a stream."""

    stream: str
    columns: tuple[str, ...]
    """In the order of the schema; with the time column, if one is declared."""
    clause: Clause

    @property
    def properties(self) -> Properties:
        """What its rows have, for planning."""
        return Properties(self.stream, self.clause, frozenset(self.columns))


def parse_flow(text: str, describe: Callable[[str], NamedRelation]) -> FlowSelection:
    """Bind the text of a flow; raises if it is anything but some columns of some tuples of one stream."""
    relations: list[NamedRelation] = []

    def describe_stream(name: str) -> NamedRelation:
        relation = describe(name)
        relations.append(relation)
        return relation

    # Without user functions: their code is another server's.
    query = bind_query(text, describe_stream)
    if not _is_plain(query) or any(may_raise(factor) for factor in query.stream.clause):
        raise Unsupported(
            "a flow must select columns of one stream, by conditions that cannot fail",
            hint="as in SELECT a, b FROM s WHERE a > 1",
        )
    schema, selected = relations[0].schema, {output.value.column for output in query.outputs}
    columns = tuple(name for name in schema.names if name in selected or name == schema.time)
    return FlowSelection(relations[0].name, columns, query.stream.clause)


def flow_text(schema: Schema, stream: str, columns: Iterable[str] | None, clause: Clause) -> str:
    """A flow as text, with all columns or some of them, and those factors of a clause that can be part of it.

    >>> schema = Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", "ts")
    >>> flow_text(schema, "trades", ["price"], (IsNull("sym"),))
    'SELECT `price`, `ts` FROM `trades` WHERE `sym` IS NULL'
    >>> flow_text(schema, "trades", None, ())
    'SELECT * FROM `trades`'
    """
    chosen = set(schema.names if columns is None else columns) | ({schema.time} if schema.time else set())
    names = [_quoted(name) for name in schema.names if name in chosen]
    listed = "*" if len(names) == len(schema.columns) else ", ".join(names or [_quoted(schema.names[0])])
    conditions = [text for factor in clause if (text := _condition(schema, stream, factor)) is not None]
    while sum(map(len, conditions)) > LONGEST_CONDITIONS:
        conditions.remove(max(conditions, key=len))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {listed} FROM {_quoted(stream)}{where}"


def may_raise(predicate: Predicate) -> bool:
    """Whether a predicate may fail for a tuple, or calls what only one server has."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return any(map(may_raise, parts))
        case Compare(offset=offset, domain=domain):
            return bool(offset) and domain == "int"
        case Opaque():
            return True
    return False


def _is_plain(query: Query) -> bool:
    grouped = query.grouping is not None or query.steps is not None or query.overs or query.finishes
    if grouped or query.joins or query.uses_now or query.at_now is not None:
        return False
    is_stream = query.stream.kind is RelationKind.STREAM and query.stream.window == WHOLE
    return is_stream and all(output.value.column is not None for output in query.outputs)


def _condition(schema: Schema, stream: str, factor: Predicate) -> str | None:
    """A factor as SQL that means exactly this factor; None if there is none."""
    if may_raise(factor):
        return None
    quoted = Schema(tuple(Column(_quoted(column.name), column.type) for column in schema.columns))
    text = factor_text(_with_quoted_columns(factor), quoted)
    relation = NamedRelation(stream, schema)
    try:
        bound = bind_query(f"SELECT * FROM {_quoted(stream)} WHERE {text}", lambda _: relation)
    except TureenError:
        return None
    compound = isinstance(factor, AnyOf) or " OR " in text
    return (f"({text})" if compound else text) if bound.stream.clause == (factor,) else None


def _with_quoted_columns(predicate: Predicate) -> Predicate:
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return replace(predicate, parts=tuple(map(_with_quoted_columns, parts)))
        case Compare(left, _, right):
            return replace(predicate, left=_quoted(left), right=_quoted(right))
        case Within(column) | IsNull(column) | Like(column):
            return replace(predicate, column=_quoted(column))
    return predicate


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
