"""Flows: a selection and projection of a stream, written as a query, that a peer is asked for.

The text is SQL that the sender binds against its own stream, so that a peer cannot ask for anything but tuples of that
stream. Only conditions that cannot fail on a tuple are part of a flow; the others are evaluated where the query is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from tureen.errors import Unsupported
from tureen.language import bind_query
from tureen.predicate import Clause, may_raise
from tureen.query import NamedRelation, Query, RelationKind
from tureen.schema import Schema
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import factor_sql, has_text, quoted
from tureen.window import WHOLE

LONGEST_CONDITIONS = 16_000
"""The most characters of the conditions of a flow, which is part of an address: the longest ones are left out."""


KNOWN_FLOWS = 1024
"""The number of flows of links that a process remembers."""


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


@lru_cache(KNOWN_FLOWS)
def known_flow(text: str, stream: str, schema: Schema) -> FlowSelection:
    """The flow of a link, which is asked for often."""
    relation = NamedRelation(stream, schema)
    return parse_flow(text, lambda _: relation)


def flow_text(schema: Schema, stream: str, columns: Iterable[str] | None, clause: Clause) -> str:
    """A flow as text, with all columns or some of them, and those factors of a clause that can be part of it.

    >>> schema = Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", "ts")
    >>> from tureen.predicate import IsNull
    >>> flow_text(schema, "trades", ["price"], (IsNull("sym"),))
    'SELECT `price`, `ts` FROM `trades` WHERE (`sym` IS NULL)'
    >>> flow_text(schema, "trades", None, ())
    'SELECT * FROM `trades`'
    """
    chosen = set(schema.names if columns is None else columns) | ({schema.time} if schema.time else set())
    names = [quoted(name) for name in schema.names if name in chosen]
    listed = "*" if len(names) == len(schema.columns) else ", ".join(names or [quoted(schema.names[0])])
    conditions = [f"({factor_sql(schema, factor)})" for factor in clause if has_text(schema, stream, factor)]
    while sum(map(len, conditions)) > LONGEST_CONDITIONS:
        conditions.remove(max(conditions, key=len))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {listed} FROM {quoted(stream)}{where}"


def _is_plain(query: Query) -> bool:
    grouped = query.grouping is not None or query.steps is not None or query.overs or query.finishes
    if grouped or query.joins or query.uses_now or query.at_now is not None:
        return False
    is_stream = query.stream.kind is RelationKind.STREAM and query.stream.window == WHOLE
    return is_stream and all(output.value.column is not None for output in query.outputs)
