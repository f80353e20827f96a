"""Holistic aggregates, which need all of their rows at once: DuckDB computes them from the rows of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tureen.aggregate_functions import AGGREGATES, AggregateTypes
from tureen.aggregates.aggregate_sql import result_column, sql_columns
from tureen.evaluation.duck import run
from tureen.query import Aggregate, Expression

STEP, CODE = "_step", "_code"
"""The columns with the step and the group of each row."""

PAIRS = frozenset(name for name, function in AGGREGATES.items() if function.types is AggregateTypes.PAIR_STATISTIC)


def holistic_columns(aggregates: Sequence[Aggregate], rows: pa.Table) -> list[pa.Array]:
    """Each aggregate's values, one per (step, code) that occurs, in that order."""
    computed_first: list[str] = []
    outputs: list[str] = []
    for number, aggregate in enumerate(aggregates):
        call = aggregate
        if aggregate.function in PAIRS:
            # A statistic of two values refers to each of them many times, so they are computed first.
            names = [f"_argument{number}_{index}" for index in range(len(aggregate.arguments))]
            arguments = zip(aggregate.arguments, names, strict=True)
            computed_first += [f"({argument.sql}) AS {name}" for argument, name in arguments]
            call = _over_columns(aggregate, names)
        outputs += sql_columns(number, call)
    rows_sql = f"(SELECT *, {', '.join(computed_first)} FROM rows)" if computed_first else "rows"
    sql = f"SELECT {', '.join(outputs)} FROM {rows_sql} GROUP BY {STEP}, {CODE} ORDER BY {STEP}, {CODE}"
    result = run(sql, {"rows": rows}, "an aggregate")
    return [result_column(number, aggregate, result) for number, aggregate in enumerate(aggregates)]


def _over_columns(aggregate: Aggregate, names: Sequence[str]) -> Aggregate:
    """An aggregate over the columns that contain its evaluated arguments."""
    arguments = zip(aggregate.arguments, names, strict=True)
    columns = tuple(Expression(name, argument.type, (name,), name) for argument, name in arguments)
    return replace(aggregate, arguments=columns)
