"""Partial aggregates as rows of a stream: what a server can receive instead of tuples (Data Stream Sharing, §3.3).

A row stands for tuples of one group that lie in one *pane*, an interval of time of which the steps of queries consist.
It has the columns by which it is grouped, the least time of its tuples, and for each partial aggregate a column whose
name begins with an underscore, such as `_sum:price`. Several rows can stand for parts of the same group and pane: the
tuples that arrive later are a row of their own. So nothing has to be replaced, and a query over the tuples becomes one
over the rows, in which counts are sums of counts, and sums are sums of sums.

Only aggregates are sent that do not depend on how the tuples are divided: counts, extremes, and sums of integers and
DECIMALs, but not of doubles.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tureen.predicate import columns_of, may_raise
from tureen.query import Aggregate, Expression, Query
from tureen.schema import INTEGRAL, Column, Kind, Schema, Type
from tureen.sharing.properties import Aggregation, PartialAggregate, Properties
from tureen.window import Steps

FIRST_ID = "_first"
"""The column with a tuple id of the home: the row stands for none before it, and earlier rows for none from it on."""

SUM_DIGITS = 18
"""The digits of a sum of DECIMALs in a row, which fit in 64 bits."""

_BIGINT = Type(Kind.BIGINT)
_DOUBLE = Type(Kind.DOUBLE)


def column_sql(name: str) -> str:
    """The DuckDB SQL of a column.

    >>> column_sql('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _name_in(sql: str) -> str:
    """The column of `column_sql`."""
    return sql[1:-1].replace('""', '"')


def key_names(aggregation: Aggregation) -> frozenset[str]:
    """The columns by which rows are grouped, without keys that are expressions."""
    names = ((_name_in(sql), sql) for sql in aggregation.keys)
    return frozenset(name for name, sql in names if column_sql(name) == sql)


def partial_name(partial: PartialAggregate) -> str:
    """The column of a partial aggregate.

    >>> partial_name(PartialAggregate("sum", '"x"')), partial_name(PartialAggregate("count", ""))
    ('_sum:x', '_count')
    """
    return f"_{partial.function}:{_name_in(partial.argument)}" if partial.argument else f"_{partial.function}"


def partial_columns(schema: Schema, aggregation: Aggregation) -> tuple[Column, ...]:
    """The columns of rows beside the time and the keys, in the order of their names; `schema` is the stream's."""
    columns = [Column(partial_name(partial), _partial_type(schema, partial)) for partial in aggregation.partials]
    return (*sorted(columns, key=lambda column: column.name), Column(FIRST_ID, _BIGINT))


def has_partial_rows(schema: Schema) -> bool:
    """Whether a replica has rows of partial aggregates, by its own schema."""
    return schema.find(FIRST_ID) is not None


def _partial_type(schema: Schema, partial: PartialAggregate) -> Type:
    if partial.function == "count":
        return _BIGINT
    column = schema.find(_name_in(partial.argument))
    assert column is not None
    if partial.function != "sum":
        return column.type
    return _BIGINT if column.type.kind in INTEGRAL else Type(Kind.DECIMAL, SUM_DIGITS, column.type.scale)


# From a query to what it needs


def reason_for_tuples(query: Query, schema: Schema) -> str | None:
    """Why a query over one stream needs tuples; None if it can be computed from partial aggregates."""
    grouping, steps = query.grouping, query.steps
    if query.joins or len(query.leaves) != 1 or grouping is None:
        return "its rows are tuples, or are joined from them"
    if query.final:
        return "EMIT FINAL needs the punctuations among the tuples"
    if steps is None or steps.rows or steps.partial or query.stream.window.span(0).counts_rows:
        return "only whole steps of time consist of panes"
    if schema.time is None:
        return "the stream has no time column"
    if query.at_now is not None:
        return "a condition depends on NOW"
    if grouping.sets is not None or any(key.column not in schema.names for key in grouping.keys):
        return "it is grouped by more than columns"
    for aggregate in grouping.aggregates:
        reason = _reason_of_aggregate(aggregate, schema)
        if reason is not None:
            return reason
    if any(may_raise(factor) for factor in query.stream.clause):
        return "a condition may fail on a tuple"
    return None


def _reason_of_aggregate(aggregate: Aggregate, schema: Schema) -> str | None:
    function, arguments = aggregate.function, aggregate.arguments
    is_plain = not aggregate.distinct and not aggregate.order and len(arguments) <= 1
    if not is_plain or function not in ("count", "sum", "min", "max", "avg"):
        return f"{function} of several steps cannot be computed from those of their parts"
    if not arguments:
        return None
    column = schema.find(arguments[0].columns[0]) if len(arguments[0].columns) == 1 else None
    if column is None or arguments[0].sql not in (column_sql(column.name), _as_double(column.name)):
        return f"the argument of {function} is not a column"
    if function in ("sum", "avg"):
        is_exact = column.type.kind in INTEGRAL or _is_narrow_decimal(column.type)
        return (
            None if is_exact else f"{function} of {column.type.sql} depends on the order of tuples, or has many digits"
        )
    return None if arguments[0].column == column.name else f"the argument of {function} is not a column"


def _is_narrow_decimal(type_: Type) -> bool:
    return type_.kind is Kind.DECIMAL and type_.precision <= SUM_DIGITS


def _as_double(name: str) -> str:
    """The argument of an average of integers."""
    return f"CAST({column_sql(name)} AS DOUBLE)"


def partial_properties(query: Query, schema: Schema) -> Properties | None:
    """The rows that a query over one stream can be computed from; None if it needs tuples."""
    if reason_for_tuples(query, schema) is not None:
        return None
    grouping, steps = query.grouping, query.steps
    assert grouping is not None
    assert steps is not None
    pane = gcd(steps.width, steps.slide)
    keys = tuple(sorted(column_sql(str(key.column)) for key in grouping.keys))
    partials = frozenset(partial for aggregate in grouping.aggregates for partial in _partials_of(aggregate))
    # The rows of a group are there, also if none of its aggregates counts them.
    aggregation = Aggregation(Steps(pane, pane, steps.origin % pane), tuple(dict.fromkeys(keys)), partials or _ROWS)
    read = {_name_in(partial.argument) for partial in aggregation.partials if partial.argument}
    columns = read | key_names(aggregation) | {str(schema.time)}
    return Properties(query.stream.relation, query.stream.clause, frozenset(columns), aggregation)


_ROWS = frozenset({PartialAggregate("count", "")})


def _partials_of(aggregate: Aggregate) -> list[PartialAggregate]:
    if not aggregate.arguments:
        return [*_ROWS]
    argument = column_sql(aggregate.arguments[0].columns[0])
    functions = ("sum", "count") if aggregate.function == "avg" else (aggregate.function,)
    return [PartialAggregate(function, argument) for function in functions]


# From rows to the answer of a query


def over_partial_rows(query: Query, schema: Schema, aggregation: Aggregation) -> Query:
    """A query as one over partial aggregates that it can be computed from; `schema` is the stream's.

    Conditions on the keys of rows are evaluated again; the rows satisfy the others.
    """
    grouping, keys = query.grouping, key_names(aggregation)
    assert grouping is not None
    clause = tuple(factor for factor in query.stream.clause if columns_of(factor) <= keys)
    merged = tuple(_merging(aggregate, schema) for aggregate in grouping.aggregates)
    return replace(query.with_clause(query.sql, clause), grouping=replace(grouping, aggregates=merged))


def _merging(aggregate: Aggregate, schema: Schema) -> Aggregate:
    """The aggregate of partial aggregates that is an aggregate of the tuples."""
    parts = {partial.function: _column(schema, partial) for partial in _partials_of(aggregate)}
    if aggregate.function == "count":
        return replace(aggregate, arguments=(parts["count"],), is_weighted=True)
    if aggregate.function != "avg":
        return replace(aggregate, arguments=(parts[aggregate.function],))
    total = parts["sum"]
    if total.type.kind in INTEGRAL:
        total = Expression(f"CAST({total.sql} AS DOUBLE)", _DOUBLE, total.columns)
    return replace(aggregate, arguments=(total, parts["count"]), is_weighted=True)


def _column(schema: Schema, partial: PartialAggregate) -> Expression:
    name = partial_name(partial)
    return Expression(column_sql(name), _partial_type(schema, partial), (name,), name)
