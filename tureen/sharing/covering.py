"""Matching properties: whether a stream has what a query needs (Data Stream Sharing, §3.3)."""

from __future__ import annotations

from functools import lru_cache

from tureen.predicate import AllOf, Clause, columns_of
from tureen.schema import Schema
from tureen.sharing.implication import Implication, Premise
from tureen.sharing.partial_rows import key_names
from tureen.sharing.properties import Aggregation, Properties
from tureen.sharing.step_windows import composes

KNOWN_PAIRS = 65_536
"""The number of pairs of properties of which a process remembers whether one covers the other."""


@lru_cache(KNOWN_PAIRS)
def covers(schema: Schema, stream: Properties, query: Properties) -> bool:
    """Whether a query can be computed from a stream; `schema` is that of their common input.

    The query's selection must imply that of the stream, whose rows must have the columns that the query needs and
    those of the factors that remain. Aggregates are computed from partial aggregates, if these factors are over keys.
    """
    return stream.stream == query.stream and has_rows_of(stream, query, Premise(schema, query.clause))


def has_rows_of(stream: Properties, query: Properties, selection: Premise) -> bool:
    """As `covers`, of the same input; `selection` is the query's, for many streams."""
    if stream.aggregation is not None:
        return _has_aggregates_of(stream, query, selection)
    if not query.columns <= stream.columns or selection.implies(stream.clause) is not Implication.YES:
        return False
    if query.clause_columns <= stream.columns:
        return True
    return columns_of(AllOf(residual(selection.schema, stream.clause, query.clause))) <= stream.columns


def residual(schema: Schema, stream: Clause, query: Clause) -> Clause:
    """The factors of a query that do not follow from the selection of a stream."""
    known = Premise(schema, stream)
    return tuple(factor for factor in query if known.implies((factor,)) is not Implication.YES)


def _has_aggregates_of(stream: Properties, query: Properties, selection: Premise) -> bool:
    if stream.aggregation is None or query.aggregation is None:
        return False
    if not _composes(stream.aggregation, query.aggregation):
        return False
    if stream.clause == query.clause:
        return True
    if selection.implies(stream.clause) is not Implication.YES:
        return False
    keys = key_names(stream.aggregation)
    return columns_of(AllOf(residual(selection.schema, stream.clause, query.clause))) <= keys


def _composes(stream: Aggregation, query: Aggregation) -> bool:
    return (
        composes(stream.steps, query.steps)
        and set(query.keys) <= set(stream.keys)
        and query.partials <= stream.partials
    )
