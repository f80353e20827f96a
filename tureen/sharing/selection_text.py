"""Properties of a stream as SQL: the form in which peers ask each other for tuples, or for partial aggregates of them.

The peer that is asked binds the text, so that nothing but a query of the language can be asked for. A factor that has
no text with exactly its meaning is left out: the stream is then wider than needed, and the query selects from it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

from tureen.errors import TureenError, Unsupported
from tureen.language import bind_query
from tureen.language.predicates.factor_text import factor_text
from tureen.predicate import (
    Clause,
    Predicate,
    columns_of,
    may_raise,
)
from tureen.query import Grouping, NamedRelation, Query, aggregate_name
from tureen.schema import Schema
from tureen.sharing.partial_rows import column_sql, key_names, partial_properties
from tureen.sharing.properties import Aggregation, Properties
from tureen.window import WHOLE, from_micros

KNOWN_TEXTS = 1024
"""The number of texts whose properties a process remembers."""

MAX_TEXT = 65_536
"""The longest text of a selection, in characters."""

MAX_ADDRESS = 60_000
"""The longest text of a selection that is asked for, in the characters that it has as part of an address."""


def selection_text(schema: Schema, properties: Properties) -> str:
    """The SQL of a stream; `schema` is that of the original stream.

    >>> from tureen.predicate import Interval, Within
    >>> schema = Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", time="ts")
    >>> selection_text(schema, Properties("trades", (Within("price", (Interval(9.5, None),)),), frozenset({"ts"})))
    'SELECT `ts` FROM `trades` WHERE (`price` >= 9.5)'
    """
    aggregation = properties.aggregation
    if aggregation is None:
        items, window = [quoted(name) for name in schema.names if name in properties.columns], ""
    else:
        items, window = _calls(schema, aggregation), f" {_panes_text(aggregation)}"
    text = f"SELECT {', '.join(items)} FROM {quoted(properties.stream)}{window}"
    if properties.clause:
        text += " WHERE " + " AND ".join(f"({factor_sql(schema, factor)})" for factor in properties.clause)
    if aggregation is not None and aggregation.keys:
        names = key_names(aggregation)
        text += " GROUP BY " + ", ".join(quoted(name) for name in schema.names if name in names)
    return text


def _calls(schema: Schema, aggregation: Aggregation) -> list[str]:
    names = {column_sql(name): quoted(name) for name in schema.names}
    return sorted(f"{partial.function}({names.get(partial.argument, '*')})" for partial in aggregation.partials)


def _panes_text(aggregation: Aggregation) -> str:
    steps = aggregation.steps
    start = f" START AT '{from_micros(steps.origin).isoformat()}'" if steps.origin else ""
    return f"[TUMBLE {steps.width} MICROSECONDS{start}]"


@lru_cache(KNOWN_TEXTS)
def parse_selection(text: str, stream: str, schema: Schema) -> Properties:
    """The properties of a stream that a peer asks for; raises if the text is not a plain selection of that stream."""
    if len(text) > MAX_TEXT:
        raise Unsupported(f"a selection must not be longer than {MAX_TEXT} characters, got {len(text)}")
    return flow_properties(bind_query(text, lambda _: NamedRelation(stream, schema)), schema)


def flow_properties(query: Query, schema: Schema) -> Properties:
    """The properties of a query that asks for tuples of a stream, or for partial aggregates; raises for any other."""
    is_plain = (
        not (query.joins or query.finishes or query.final or query.overs)
        and (query.at_now, query.qualify) == (None, None)
        and query.stream.window == WHOLE
        and not any(may_raise(factor) for factor in query.stream.clause)
    )
    if is_plain and query.grouping is not None and _has_plain_groups(query, query.grouping):
        partial = partial_properties(query, schema)
        if partial is not None and partial.aggregation is not None and partial.aggregation.steps == query.steps:
            return partial
    columns = frozenset(output.name for output in query.outputs if output.value.column == output.name)
    is_selection = query.grouping is None and query.steps is None and len(columns) == len(query.outputs)
    if not is_plain or not is_selection:
        raise Unsupported(
            "a flow must be columns of the tuples of one stream, or counts, sums and extremes of them in steps that "
            "follow one another, by conditions that cannot fail",
            detail=query.sql,
            hint="as in SELECT a, b FROM s WHERE a > 1",
        )
    return Properties(query.stream.relation, query.stream.clause, columns)


def _has_plain_groups(query: Query, grouping: Grouping) -> bool:
    """Whether the rows of a query are its aggregates alone."""
    names = [aggregate_name(number) for number in range(len(grouping.aggregates))]
    functions = {aggregate.function for aggregate in grouping.aggregates}
    is_partial = grouping.having is None and functions <= {"count", "sum", "min", "max"}
    return is_partial and [output.value.column for output in query.outputs] == names


def shippable(schema: Schema, needed: Properties) -> Properties:
    """The rows that a query needs, in a form that peers can ask each other for.

    They have the columns of all factors, which are evaluated again where the query is registered, and the time. Only
    factors remain that cannot fail, and that mean the same to the peer that reads their text.
    """
    columns = needed.columns | needed.clause_columns
    if schema.time is not None:
        columns |= {schema.time}
    # A stream without a time column may be read for the number of its tuples alone.
    columns = columns or frozenset(schema.names[:1])
    rows = Properties(needed.stream, (), columns)
    clause = tuple(factor for factor in needed.clause if has_text(schema, needed.stream, factor))
    return shortened(schema, replace(rows, clause=clause))


def shippable_partials(schema: Schema, needed: Properties) -> Properties | None:
    """The partial aggregates that a query needs, in a form that peers can ask each other for; None if there is none.

    Factors without a text must be over keys, which are in the rows.
    """
    assert needed.aggregation is not None
    keys = key_names(needed.aggregation)
    clause = tuple(factor for factor in needed.clause if has_text(schema, needed.stream, factor))
    if not all(columns_of(factor) <= keys for factor in needed.clause if factor not in clause):
        return None
    rows = replace(needed, clause=clause)
    try:
        text = selection_text(schema, rows)
        is_same = len(quote(text, safe="")) <= MAX_ADDRESS and parse_selection(text, needed.stream, schema) == rows
    except TureenError:
        return None
    return rows if is_same else None


def shortened(schema: Schema, needed: Properties) -> Properties:
    """The rows that are needed; all of the stream if their text is too long for the address of a request."""
    is_long = needed.clause and len(quote(selection_text(schema, needed), safe="")) > MAX_ADDRESS
    return replace(needed, clause=()) if is_long else needed


def has_text(schema: Schema, stream: str, factor: Predicate) -> bool:
    """Whether a factor cannot fail and its text is bound to the same factor."""
    if may_raise(factor):
        return False
    clause: Clause = (factor,)
    try:
        text = selection_text(schema, Properties(stream, clause, frozenset(schema.names)))
        return parse_selection(text, stream, schema).clause == clause
    except TureenError:
        return False


def factor_sql(schema: Schema, factor: Predicate) -> str:
    """A factor as SQL, with quoted names."""
    return factor_text(factor, schema, quoted)


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"
