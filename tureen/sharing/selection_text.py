"""Properties of a selected and projected stream as SQL: the form in which peers ask each other for streams.

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
from tureen.predicate import AllOf, AnyOf, Clause, Compare, IsNull, Like, Opaque, Predicate, Within, may_raise
from tureen.query import NamedRelation
from tureen.schema import Column, Schema
from tureen.sharing.properties import Properties
from tureen.window import WHOLE

KNOWN_TEXTS = 1024
"""The number of texts whose properties a process remembers."""

MAX_TEXT = 65_536
"""The longest text of a selection, in characters."""

MAX_ADDRESS = 60_000
"""The longest text of a selection that is asked for, in the characters that it has as part of an address."""


def selection_text(schema: Schema, properties: Properties) -> str:
    """The SQL of a stream without aggregates; `schema` is that of the original stream.

    >>> from tureen.predicate import Interval
    >>> schema = Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", time="ts")
    >>> selection_text(schema, Properties("trades", (Within("price", (Interval(9.5, None),)),), frozenset({"ts"})))
    'SELECT `ts` FROM `trades` WHERE (`price` >= 9.5)'
    """
    assert properties.aggregation is None
    select = ", ".join(map(quoted, (name for name in schema.names if name in properties.columns)))
    text = f"SELECT {select} FROM {quoted(properties.stream)}"
    if properties.clause:
        text += " WHERE " + " AND ".join(f"({factor_sql(schema, factor)})" for factor in properties.clause)
    return text


@lru_cache(KNOWN_TEXTS)
def parse_selection(text: str, stream: str, schema: Schema) -> Properties:
    """The properties of a stream that a peer asks for; raises if the text is not a plain selection of that stream."""
    if len(text) > MAX_TEXT:
        raise Unsupported(f"a selection must not be longer than {MAX_TEXT} characters, got {len(text)}")
    query = bind_query(text, lambda _: NamedRelation(stream, schema))
    columns = frozenset(output.name for output in query.outputs if output.value.column == output.name)
    is_plain = (
        not (query.joins or query.finishes or query.final or query.overs)
        and (query.grouping, query.steps, query.at_now, query.qualify) == (None, None, None, None)
        and query.stream.window == WHOLE
        and len(columns) == len(query.outputs)
        and not any(may_raise(factor) for factor in query.stream.clause)
    )
    if not is_plain:
        raise Unsupported(
            "a stream can be received as columns of its tuples that satisfy a condition, and in no other form",
            detail=text,
        )
    return Properties(stream, query.stream.clause, columns)


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
    with_quotes = Schema(tuple(Column(quoted(column.name), column.type) for column in schema.columns))
    return factor_text(_with_quoted_names(factor), with_quotes)


def _with_quoted_names(predicate: Predicate) -> Predicate:
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return replace(predicate, parts=tuple(map(_with_quoted_names, parts)))
        case Compare(left=left, right=right):
            return replace(predicate, left=quoted(left), right=quoted(right))
        case Within(column=column) | IsNull(column=column) | Like(column=column):
            return replace(predicate, column=quoted(column))
        case Opaque():
            return predicate


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"
