"""The partial aggregates that a grouping needs, and how its aggregates are computed from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from tureen.aggregates import aggregate_kernels as kernels
from tureen.query import Aggregate, Expression, Grouping
from tureen.schema import FRACTIONAL, Kind, Type

MOST_DIGITS = 18
"""The greatest precision of a DECIMAL that fits in 64 bits."""

_OF_KEYS = {
    "min": kernels.MIN,
    "max": kernels.MAX,
    "bit_and": kernels.AND,
    "bit_or": kernels.OR,
    "bit_xor": kernels.XOR,
}
_MOMENTS = frozenset({"stddev_samp", "stddev_pop", "var_samp", "var_pop"})


class Form(Enum):
    """The form in which a measure stores each value."""

    PRESENCE = auto()
    """Whether it is not NULL."""
    KEY = auto()
    """Its integer key (`tureen.keys`); that of integers and DECIMALs is the (unscaled) number itself."""
    DOUBLE = auto()
    """The value as a double."""


@dataclass(frozen=True, slots=True)
class Measure:
    """An argument of aggregates, in one form."""

    value: Expression
    form: Form


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an aggregate is computed from a group's state: the slot of its count, and the first of its other slots."""

    aggregate: Aggregate
    count: int
    slot: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """The measures and the program of a grouping, and the recipes of its aggregates.

    An aggregate without a recipe is *holistic*: it needs all of its rows at once. Aggregates of DISTINCT values are
    computed in two phases: in the first the values are further keys, so that each occurs once in its group, and in the
    second the groups are combined (`tureen.aggregates.distinct`).
    """

    keys: tuple[Expression, ...]
    """The expressions to group by: the query's keys, then the DISTINCT values."""
    measures: tuple[Measure, ...]
    program: npt.NDArray[np.int64]
    ints: int
    floats: int
    recipes: tuple[Recipe | None, ...]
    aggregates: tuple[Aggregate, ...]
    distinct: Distinct | None = None

    @property
    def from_rows(self) -> list[int]:
        """The numbers of the holistic aggregates."""
        second_phase = () if self.distinct is None else self.distinct.numbers
        return [number for number, recipe in enumerate(self.recipes) if recipe is None and number not in second_phase]

    @property
    def shape(self) -> str:
        """A text that is equal for equal plans: queries of equal clause and shape share their partial aggregates."""
        values = None if self.distinct is None else self.distinct.values
        return repr((self.keys, values, self.measures, self.program.tolist()))


@dataclass(frozen=True, eq=False)
class Distinct:
    """The second phase: the aggregates of DISTINCT values, and the plan that computes them from these values."""

    numbers: tuple[int, ...]
    values: tuple[Expression, ...]
    plan: Plan


class _Program:
    """Collects the distinct lines of a program."""

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


def plan_of(grouping: Grouping, *, two_phase: bool = True) -> Plan:
    """The plan of a grouping; without a second phase, aggregates of DISTINCT values are holistic."""
    program = _Program()
    recipes = tuple(_recipe(program, aggregate) for aggregate in grouping.aggregates)
    distinct = _distinct(grouping.aggregates) if two_phase else None
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
    """The second phase, if it can compute all aggregates of DISTINCT values."""
    distinct = {number: aggregate for number, aggregate in enumerate(aggregates) if aggregate.distinct}
    values = {aggregate.arguments for aggregate in distinct.values()}
    if len(values) != 1:
        return None
    # In the second phase each value occurs once, so DISTINCT is redundant.
    plain = tuple(replace(aggregate, distinct=False) for aggregate in distinct.values())
    plan = plan_of(Grouping((), plain), two_phase=False)
    return None if plan.from_rows else Distinct(tuple(distinct), values.pop(), plan)


def _recipe(program: _Program, aggregate: Aggregate) -> Recipe | None:
    if aggregate.distinct:
        return None
    if aggregate.function == "count":
        if not aggregate.arguments:
            return Recipe(aggregate, 0)
        return Recipe(aggregate, program.slot(kernels.COUNT, null_if_any(aggregate.arguments), Form.PRESENCE))
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


def is_narrow(value_type: Type) -> bool:
    """Whether the keys of a type are 64-bit integers."""
    return value_type.kind is not Kind.STRING and value_type.precision <= MOST_DIGITS


def null_if_any(values: tuple[Expression, ...]) -> Expression:
    """An expression that is NULL if any of the values is."""
    if len(values) == 1:
        return values[0]
    missing = " OR ".join(f"({value.sql}) IS NULL" for value in values)
    columns = tuple(sorted({name for value in values for name in value.columns}))
    return Expression(f"CASE WHEN {missing} THEN NULL ELSE TRUE END", Type(Kind.BOOLEAN), columns)
