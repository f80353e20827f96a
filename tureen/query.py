"""A standing query, bound to its stream: what the language gives and everything else takes.

```
rows of the window for which the clause holds
    → grouping: one row per group (and per step), if there is one
    → outputs, distinct, order, offset and limit
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tureen.predicate import Clause
from tureen.schema import Type
from tureen.window import Steps, Window

STEP_START, STEP_END = "window_start", "window_end"
"""The columns that a query with steps has beside its keys and aggregates."""


def key_name(number: int) -> str:
    """The column of a grouping's key."""
    return f"_key{number}"


def aggregate_name(number: int) -> str:
    """The column of a grouping's aggregate."""
    return f"_agg{number}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A value computed from one row, in DuckDB SQL that means what Spark means.

    The row is one of the stream or, after a grouping, one of its keys and aggregates.
    """

    sql: str
    type: Type
    columns: tuple[str, ...]
    """The columns that it names."""
    column: str | None = None
    """The column that it is, where it is nothing else."""


@dataclass(frozen=True, slots=True)
class Output:
    """One item of the select list, under the name that the answer gives it."""

    name: str
    value: Expression


class Direction(NamedTuple):
    """How an aggregate orders its rows by one of its arguments."""

    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """As it stands behind the argument."""
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the rows of a group.

    COUNT(*) has no argument; `parameters` are constants, such as the percentage of a quantile. The last arguments,
    as many as `order` has items, are what the rows are ordered by.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: Type
    distinct: bool = False
    parameters: tuple[float, ...] = ()
    order: tuple[Direction, ...] = ()
    separator: str = ""
    """What stands between the texts of listagg."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY keys HAVING …: its rows have the columns `_key0`, …, `_agg0`, …, and those of the step."""

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """One item of ORDER BY."""

    value: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM stream WHERE clause, over a window, perhaps grouped and ordered."""

    sql: str
    stream: str
    clause: Clause
    outputs: tuple[Output, ...]
    window: Window
    steps: Steps | None = None
    grouping: Grouping | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    @cached_property
    def finishes(self) -> bool:
        """Whether something is done with the rows as a whole: DISTINCT, ORDER BY, OFFSET or LIMIT."""
        return self.distinct or bool(self.order) or self.limit is not None or self.offset > 0

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream that the answer is made of, each once, in alphabetical order."""
        return tuple(sorted({name for value in self._over_rows() for name in value.columns}))

    def _over_rows(self) -> list[Expression]:
        if self.grouping is not None:
            arguments = [one for aggregate in self.grouping.aggregates for one in aggregate.arguments]
            return [*self.grouping.keys, *arguments]
        return [*(output.value for output in self.outputs), *(one.value for one in self.order)]
