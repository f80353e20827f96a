"""The queries and tuples of PSoup's experiments: conditions, windows counted in tuples, and numpy's answers.

Uniform tuples and constants as in §5.2.1: values in [0, 255]; a constant is a multiple of 32 with probability 0.2, else
anything in the range. An interval's size is uniform in [0, 255] (§5.2.2); its lower end is drawn again until the
interval lies in the range.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workload import COLUMNS, SCHEMA, tuples
from tureen.language import bind_query
from tureen.predicate import Clause
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.stems.run import times_of

SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    ">=": operator.ge,
    "<=": operator.le,
}
"""The comparisons of factors, by their sign in SQL."""

INEQUALITIES = ("<", "<=", ">", ">=")


class Factor(NamedTuple):
    """A column compared with a constant."""

    column: str
    sign: str
    constant: float

    def __str__(self) -> str:
        """The factor as SQL."""
        return f"{self.column} {self.sign} {self.constant}"


Condition = tuple[Factor, ...]
"""Factors that must all hold."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A stream's tuples, in order of time, and the conditions of the queries over it."""

    name: str
    columns: str
    """The stream's schema, as in CREATE STREAM."""
    time: str
    table: pa.Table
    conditions: Sequence[Condition]
    step: int = 1
    """Microseconds from one report to the next."""
    per_step: int = 1
    """Tuples of a report, which have one time."""

    @cached_property
    def schema(self) -> Schema:
        """The stream's schema, bound."""
        return Schema.parse(self.columns, self.time)

    @cached_property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """The columns as numpy arrays."""
        return {name: self.table.column(name).to_numpy() for name in self.table.column_names if name != self.time}

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """The tuples' times in microseconds."""
        return times_of(self.table.column(self.time))

    def span(self, size: int) -> int:
        """The length of a window of `size` tuples in microseconds; whole reports."""
        return (-(-size // self.per_step) - 1) * self.step

    def sql(self, condition: Condition, size: int) -> str:
        """The query with a condition over a window of `size` tuples."""
        where = " AND ".join(map(str, condition))
        return f"SELECT * FROM s WHERE {where} BEGIN NOW - {self.span(size) / 1e6:.6f} END NOW"

    def clauses(self) -> list[Clause]:
        """The conditions as clauses of the engine."""
        return [
            bind_query(self.sql(condition, 1), lambda _: NamedRelation("s", self.schema)).stream.clause
            for condition in self.conditions
        ]

    def truth(self, condition: Condition, first: int, last: int) -> npt.NDArray[np.int64]:
        """Which tuples from `first` to before `last` satisfy a condition, by numpy alone."""
        matches = np.ones(last - first, np.bool_)
        for column, sign, constant in condition:
            matches &= SIGNS[sign](self.values[column][first:last], constant)
        return np.flatnonzero(matches) + first

    def begin(self, size: int, last: int) -> int:
        """The first tuple in a window of that size after `last` tuples."""
        return int(np.searchsorted(self.times, self.times[last - 1] - self.span(size), side="left"))


def uniform(name: str, rows: int, conditions: Sequence[Condition]) -> Workload:
    """Conditions over four columns uniform in [0, 255], a tuple each microsecond."""
    return Workload(name, SCHEMA, "ts", tuples(rows, 0), conditions)


def equalities(count: int, seed: int = 7) -> list[Condition]:
    """One to four equalities each."""
    chance = random.Random(seed)
    return [tuple(Factor(name, "=", constant(chance)) for name in _columns(chance, None)) for _ in range(count)]


def intervals(count: int, seed: int = 7, predicates: int | None = None) -> list[Condition]:
    """One to four interval predicates each, or exactly `predicates`."""
    chance = random.Random(seed)
    return [
        tuple(factor for name in _columns(chance, predicates) for factor in _interval(name, chance))
        for _ in range(count)
    ]


def constant(chance: random.Random) -> int:
    """A constant of the paper's distribution."""
    return chance.randrange(0, 256, 32) if chance.random() < 0.2 else chance.randrange(256)


def _columns(chance: random.Random, count: int | None) -> list[str]:
    return chance.sample(COLUMNS, chance.randint(1, len(COLUMNS)) if count is None else count)


def _interval(column: str, chance: random.Random) -> tuple[Factor, Factor]:
    size = chance.randint(0, 255)
    low = constant(chance)
    while low + size > 255:
        low = constant(chance)
    return Factor(column, ">=", low), Factor(column, "<=", low + size)
