"""Conditions over joined rows: comparisons first, then SQL, then SQL that calls user functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import rows_where, with_now
from tureen.eddy.costly_factors import rank
from tureen.errors import LimitExceeded, QueryFailed
from tureen.functions import function_costs
from tureen.functions.user_function import digests_in
from tureen.join import Field, JoinCompare, JoinFactor, JoinOpaque, field_name
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.join_keys import keys_of
from tureen.joining.joined_rows import JoinedRows
from tureen.query import Expression
from tureen.schema import Kind, Type

_OPERATORS = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True)
class RowConditions:
    """Evaluates conditions over rows of inputs; `now` is the NOW of the invocation."""

    inputs: Sequence[JoinInput]
    now: int

    def values(self, column: Field, rows: JoinedRows) -> pa.Array:
        """A column of joined rows."""
        source = self.inputs[column.input]
        if rows.is_whole:
            return source.column(column.column)
        (values,) = source.columns_at([column.column], rows.rows[column.input])
        return values

    def where(self, rows: JoinedRows, factors: Sequence[JoinFactor]) -> JoinedRows:
        """The rows that satisfy factors."""
        return rows.take(self.numbers_where(rows, factors)) if factors else rows

    def numbers_where(self, rows: JoinedRows, factors: Sequence[JoinFactor]) -> Numbers:
        """The numbers of the rows that satisfy factors: comparisons first, SQL on what they leave."""
        numbers = np.arange(len(rows))
        for factor in factors:
            if isinstance(factor, JoinCompare):
                taken = rows.take(numbers)
                left, right = keys_of(factor, self.values(factor.left, taken), self.values(factor.right, taken))
                numbers = numbers[_OPERATORS[factor.op](left.values, right.values) & left.valid & right.valid]
        for factor in factors:
            if isinstance(factor, JoinOpaque) and not is_costly(factor) and len(numbers):
                numbers = numbers[self._satisfying(factor, rows.take(numbers))]
        costly = [factor for factor in factors if isinstance(factor, JoinOpaque) and is_costly(factor)]
        return self._narrowed(sorted(costly, key=_function_rank), rows, numbers) if costly else numbers

    def _narrowed(self, factors: Sequence[JoinOpaque], rows: JoinedRows, numbers: Numbers) -> Numbers:
        """The rows that satisfy factors with functions; one that raises is evaluated last, as in `tureen.matching`."""
        pending = list(factors)
        while pending and len(numbers):
            postponed: list[JoinOpaque] = []
            for factor in pending:
                try:
                    numbers = numbers[self._observed(factor, rows.take(numbers))]
                except LimitExceeded:
                    raise
                except QueryFailed:
                    if len(postponed) + 1 == len(pending):
                        raise
                    postponed.append(factor)
            pending = postponed
        return numbers

    def _observed(self, factor: JoinOpaque, rows: JoinedRows) -> Numbers:
        """The numbers of rows that satisfy SQL; calls of functions are counted, and made once for each tuple."""
        began, tuples, positions = perf_counter_ns(), rows, np.arange(len(rows))
        if factor.is_last and factor.fields:
            (number,) = inputs_of(factor)
            unique, positions = np.unique(rows.rows[number], return_inverse=True)
            tuples = JoinedRows({number: unique}, len(unique))
        passed = np.zeros(len(tuples), np.bool_)
        passed[self._satisfying(factor, tuples)] = True
        function_costs.factors.add(factor.sql, len(tuples), int(passed.sum()), perf_counter_ns() - began)
        return np.flatnonzero(passed[positions])

    def _satisfying(self, factor: JoinOpaque, rows: JoinedRows) -> Numbers:
        name = (lambda column: column.column) if factor.is_last else field_name
        columns = {name(column): self.values(column, rows) for column in dict.fromkeys(factor.fields)}
        # DuckDB needs a column to know the number of rows.
        table = pa.table(columns) if columns else pa.table({"_none": pa.nulls(len(rows))})
        table = with_now(table, self.now) if factor.uses_now else table
        return rows_where(Expression(factor.sql, Type(Kind.BOOLEAN), tuple(table.column_names)), table)


def inputs_of(factor: JoinFactor) -> frozenset[int]:
    """The inputs that a factor reads."""
    return frozenset(column.input for column in factor.fields)


def is_costly(factor: JoinOpaque) -> bool:
    """Whether a factor calls user functions."""
    return any(digests_in(factor.sql))


def _function_rank(factor: JoinOpaque) -> float:
    return rank(function_costs.factors.profile(factor.sql))
