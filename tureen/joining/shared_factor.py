"""Conditions that several followed queries have in common, besides the comparisons by which they join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tureen.aggregates.expression_values import rows_where
from tureen.join import Field, JoinOpaque, field_name
from tureen.joining.join_input import Numbers
from tureen.joining.row_conditions import is_costly
from tureen.joining.shared_join import SharedJoinOfQuery
from tureen.query import Expression
from tureen.schema import Kind, Type


@dataclass(frozen=True, slots=True)
class SharedFactor:
    """A condition in SQL over joined tuples."""

    sql: str
    columns: tuple[tuple[str, Field], ...]
    """The names in the SQL text, each with its field; fields refer to the inputs of the shared join."""
    is_costly: bool = False
    """Whether it calls a user function, which may fail or not end: only its own queries wait for it."""

    @classmethod
    def of(cls, factor: JoinOpaque, shared: SharedJoinOfQuery) -> SharedFactor:
        """A condition of a query."""
        columns = {
            field_name(field): Field(shared.index_of(field.input), field.column)
            for field in dict.fromkeys(factor.fields)
        }
        return cls(factor.sql, tuple(sorted(columns.items(), key=lambda item: item[0])), is_costly(factor))

    def shown_name(self, names: Sequence[str]) -> str:
        """The condition and the columns that it reads, given the names of the inputs."""
        columns = ", ".join(f"{names[field.input]}.{field.column}" for _, field in self.columns)
        return f"{self.sql} [{columns}]"

    @property
    def inputs(self) -> frozenset[int]:
        """The inputs that it reads."""
        return frozenset(field.input for _, field in self.columns)

    def satisfying(self, rows: int, values: Callable[[Field], pa.Array]) -> Numbers:
        """The numbers of the rows that satisfy it; `values` returns a column of all of them.

        Raises QueryFailed if it fails on one of them.
        """
        columns = {name: values(field) for name, field in self.columns}
        # DuckDB needs a column to know the number of rows.
        table = pa.table(columns) if columns else pa.table({"_none": pa.nulls(rows)})
        return rows_where(Expression(self.sql, Type(Kind.BOOLEAN), tuple(table.column_names)), table)
