"""Which partial aggregates a grouping needs, and how its aggregates follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from tureen.aggregates import aggregate_kernels as kernels
from tureen.query import Aggregate, Expression, Grouping
from tureen.schema import FRACTIONAL, Kind, Type

MOST_DIGITS = 18
"""A DECIMAL of so many digits is a number of 64 bits."""

_OF_KEYS = {
    "min": kernels.MIN,
    "max": kernels.MAX,
    "bit_and": kernels.AND,
    "bit_or": kernels.OR,
    "bit_xor": kernels.XOR,
}
_MOMENTS = frozenset({"stddev_samp", "stddev_pop", "var_samp", "var_pop"})


class Form(Enum):
    """What a measure keeps of each value."""

    PRESENCE = auto()
    """Whether it is there."""
    KEY = auto()
    """An integer that sorts like it; of whole numbers and DECIMALs the (unscaled) number itself."""
    DOUBLE = auto()
    """The value as a double."""


@dataclass(frozen=True, slots=True)
class Measure:
    """An argument of aggregates, in one form."""

    value: Expression
    form: Form


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one aggregate is made of a group's state: its slots, first of the count and then of the rest."""

    aggregate: Aggregate
    count: int
    slot: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """The measures and the program of a grouping, and what becomes of them.

    An aggregate without a recipe is *holistic*: it needs all of its rows at once, and no partial result helps.
    Aggregates of DISTINCT values are made in two goes: the values are further keys at first, so that each of them
    is there once in its group, and then the groups are put together (`tureen.aggregates.distinct`).
    """

    keys: tuple[Expression, ...]
    """What tuples are grouped by: the query's keys, and then the DISTINCT values."""
    measures: tuple[Measure, ...]
    program: npt.NDArray[np.int64]
    ints: int
    floats: int
    recipes: tuple[Recipe | None, ...]
    aggregates: tuple[Aggregate, ...]
    distinct: Distinct | None = None

    @property
    def from_rows(self) -> list[int]:
        """The numbers of the aggregates that are holistic."""
        apart = () if self.distinct is None else self.distinct.numbers
        return [place for place, recipe in enumerate(self.recipes) if recipe is None and place not in apart]

    @property
    def shape(self) -> str:
        """What makes two plans the same: queries of one clause and one shape share their partial aggregates."""
        values = None if self.distinct is None else self.distinct.values
        return repr((self.keys, values, self.measures, self.program.tolist()))


@dataclass(frozen=True, eq=False)
class Distinct:
    """The second go: which aggregates are of DISTINCT values, and the plan by which they are made of these."""

    numbers: tuple[int, ...]
    values: tuple[Expression, ...]
    plan: Plan


class _Program:
    """Collects the lines of a program, each once."""

    def __init__(self) -> None:
        self.measures: list[Measure] = []
        self.lines: dict[tuple[int, int], int] = {(kernels.ROWS, -1): 0}
        self.ints, self.floats = 1, 0

    def slot(self, op: int, value: Expression, form: Form) -> int:
        measure = Measure(value, form)
        if measure not in self.measures:
            self.measures.append(measure)
        line = (op, self.measures.index(measure))
        if line not in self.lines:
            if op in (kernels.FSUM, kernels.MOMENT):
                self.lines[line] = self.floats
                self.floats += 2 if op == kernels.FSUM else 3
            else:
                self.lines[line] = self.ints
                self.ints += 2 if op == kernels.SUM else 1
        return self.lines[line]

    def array(self) -> npt.NDArray[np.int64]:
        return np.array([(op, measure, slot) for (op, measure), slot in self.lines.items()], np.int64)


def plan_of(grouping: Grouping, *, in_two_goes: bool = True) -> Plan:
    """The plan of a grouping; in one go, aggregates of DISTINCT values are holistic."""
    program = _Program()
    recipes = tuple(_recipe(program, one) for one in grouping.aggregates)
    distinct = _distinct(grouping.aggregates) if in_two_goes else None
    return Plan(
        (*grouping.keys, *(distinct.values if distinct is not None else ())),
        tuple(program.measures),
        program.array(),
        program.ints,
        program.floats,
        recipes,
        grouping.aggregates,
        distinct,
    )


def _distinct(aggregates: tuple[Aggregate, ...]) -> Distinct | None:
    """The second go, if there is one for all aggregates of DISTINCT values."""
    wanted = {place: one for place, one in enumerate(aggregates) if one.distinct}
    values = {one.arguments for one in wanted.values()}
    if len(values) != 1:
        return None
    # Once each value is there only once, DISTINCT says nothing any more.
    plain = tuple(replace(one, distinct=False) for one in wanted.values())
    plan = plan_of(Grouping((), plain), in_two_goes=False)
    return None if plan.from_rows else Distinct(tuple(wanted), values.pop(), plan)


def _recipe(program: _Program, aggregate: Aggregate) -> Recipe | None:
    if aggregate.distinct:
        return None
    if aggregate.function == "count":
        if not aggregate.arguments:
            return Recipe(aggregate, 0)
        return Recipe(aggregate, program.slot(kernels.COUNT, together(aggregate.arguments), Form.PRESENCE))
    value = aggregate.arguments[0]
    if aggregate.function in ("sum", "avg") and value.type.kind in FRACTIONAL:
        return _counted(program, aggregate, kernels.FSUM, Form.DOUBLE)
    if aggregate.function in _MOMENTS:
        return _counted(program, aggregate, kernels.MOMENT, Form.DOUBLE)
    if aggregate.order or not is_narrow(value.type):
        return None
    if aggregate.function in ("sum", "avg"):
        return _counted(program, aggregate, kernels.SUM, Form.KEY)
    op = _OF_KEYS.get(aggregate.function)
    return None if op is None else _counted(program, aggregate, op, Form.KEY)


def _counted(program: _Program, aggregate: Aggregate, op: int, form: Form) -> Recipe:
    value = aggregate.arguments[0]
    return Recipe(aggregate, program.slot(kernels.COUNT, value, form), program.slot(op, value, form))


def is_narrow(one: Type) -> bool:
    """Whether a value is, or sorts like, a number of 64 bits."""
    return one.kind is not Kind.STRING and one.precision <= MOST_DIGITS


def together(values: tuple[Expression, ...]) -> Expression:
    """Something that is NULL where one of the values is."""
    if len(values) == 1:
        return values[0]
    missing = " OR ".join(f"({value.sql}) IS NULL" for value in values)
    columns = tuple(sorted({name for value in values for name in value.columns}))
    return Expression(f"CASE WHEN {missing} THEN NULL ELSE TRUE END", Type(Kind.BOOLEAN), columns)
