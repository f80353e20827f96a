"""Stream widening: a stream is altered so that it has what another query needs, too.

It is the future work of Data Stream Sharing (§5). The widened stream still covers the queries that used it before: they
select their rows from it.
"""

from __future__ import annotations

from tureen.language.predicates.intervals import domain_of, union
from tureen.predicate import Clause, Predicate, Within
from tureen.schema import Schema
from tureen.sharing.covering import covers
from tureen.sharing.implication import Implication, Premise
from tureen.sharing.properties import Properties


def widened(schema: Schema, stream: Properties, query: Properties) -> Properties | None:
    """The properties of a stream that covers both a stream and a query; None if one of them is aggregated.

    Each column's intervals are united; a factor that the query does not imply is left out.
    """
    if stream.stream != query.stream or stream.aggregation is not None:
        return None
    clause = _weaker(schema, stream.clause, query.clause)
    columns = stream.columns | query.columns | stream.clause_columns | query.clause_columns
    wide = Properties(stream.stream, clause, columns)
    both = covers(schema, wide, stream) and covers(schema, wide, query)
    return wide if both else None


def _weaker(schema: Schema, stream: Clause, query: Clause) -> Clause:
    needed = Premise(schema, query)
    by_column = {factor.column: factor for factor in query if isinstance(factor, Within)}
    kept: list[Predicate] = []
    for factor in stream:
        if needed.implies((factor,)) is Implication.YES:
            kept.append(factor)
        elif isinstance(factor, Within) and factor.column in by_column:
            column = schema.find(factor.column)
            assert column is not None
            united = union(domain_of(column.type), [factor.intervals, by_column[factor.column].intervals])
            kept.append(Within(factor.column, united))
    return tuple(kept)
