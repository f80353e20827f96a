"""Flows: a selection and projection of a stream, or partial aggregates of it, as a query that a peer is asked for.

The text is SQL that the sender binds against its own stream, so that a peer cannot ask for anything but tuples of that
stream. Only conditions that cannot fail on a tuple are part of a flow; the others are evaluated where the query is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from tureen.language import bind_query
from tureen.pot.links import Link
from tureen.predicate import Clause
from tureen.query import NamedRelation
from tureen.schema import Column, Schema
from tureen.sharing.partial_rows import key_names, partial_columns
from tureen.sharing.properties import Aggregation, Properties
from tureen.sharing.selection_text import factor_sql, flow_properties, has_text, quoted

LONGEST_CONDITIONS = 16_000
"""The most characters of the conditions of a flow, which is part of an address: the longest ones are left out."""


KNOWN_FLOWS = 1024
"""The number of flows of links that a process remembers."""


@dataclass(frozen=True)
class FlowSelection:
    """What a flow has of a stream."""

    properties: Properties
    columns: tuple[str, ...]
    """The columns of the stream that its rows have, in the order of the schema; with the time, if one is declared."""
    partials: tuple[Column, ...] = ()
    """The columns of the partial aggregates that its rows have beside them; none if its rows are tuples."""

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.properties.stream

    @property
    def clause(self) -> Clause:
        """The selection."""
        return self.properties.clause

    @property
    def aggregation(self) -> Aggregation | None:
        """How tuples are aggregated; None if the rows are tuples."""
        return self.properties.aggregation

    @property
    def selectable(self) -> frozenset[str]:
        """The columns that conditions on its rows can be about: of partial aggregates, the keys."""
        return frozenset(self.columns) if self.aggregation is None else key_names(self.aggregation)

    @property
    def tuple_columns(self) -> tuple[str, ...]:
        """The columns of the tuples that its rows are computed from, in alphabetical order."""
        return self.columns if self.aggregation is None else tuple(sorted(self.properties.columns))


def parse_flow(text: str, describe: Callable[[str], NamedRelation]) -> FlowSelection:
    """Bind the text of a flow; raises if it is anything but tuples of one stream, or partial aggregates of them."""
    relations: list[NamedRelation] = []

    def describe_stream(name: str) -> NamedRelation:
        relation = describe(name)
        relations.append(relation)
        return relation

    # Without user functions: their code is another server's.
    query = bind_query(text, describe_stream)
    return flow_of(flow_properties(query, relations[0].schema), relations[0].schema)


def flow_of(properties: Properties, schema: Schema) -> FlowSelection:
    """The flow with given properties; `schema` is that of the stream."""
    aggregation = properties.aggregation
    names = (properties.columns if aggregation is None else key_names(aggregation)) | {schema.time}
    columns = tuple(name for name in schema.names if name in names)
    if aggregation is None:
        with_time = replace(properties, columns=frozenset(columns))
        return FlowSelection(with_time, columns)
    return FlowSelection(properties, columns, partial_columns(schema, aggregation))


@lru_cache(KNOWN_FLOWS)
def known_flow(text: str, stream: str, schema: Schema) -> FlowSelection:
    """The flow of a link, which is asked for often."""
    relation = NamedRelation(stream, schema)
    return parse_flow(text, lambda _: relation)


def link_flow(link: Link) -> FlowSelection:
    """What a link receives."""
    return known_flow(link.flow, link.stream.name, link.stream.visible)


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
