"""The partial aggregates that a grouping needs, and how its aggregates are computed from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from tureen.aggregate_functions import PartialState, computation_of
from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.finals import FINALS, Recipe
from tureen.query import Aggregate, Expression, Grouping
from tureen.schema import Kind, Type

MOST_DIGITS = 18
"""The greatest precision of a DECIMAL that fits in 64 bits."""


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


_FOLDED: dict[PartialState, tuple[int, Form]] = {
    PartialState.SUM: (kernels.SUM, Form.KEY),
    PartialState.DOUBLE_SUM: (kernels.FSUM, Form.DOUBLE),
    PartialState.MOMENTS: (kernels.MOMENT, Form.DOUBLE),
    PartialState.LEAST: (kernels.MIN, Form.KEY),
    PartialState.GREATEST: (kernels.MAX, Form.KEY),
    PartialState.BITS_AND: (kernels.AND, Form.KEY),
    PartialState.BITS_OR: (kernels.OR, Form.KEY),
    PartialState.BITS_XOR: (kernels.XOR, Form.KEY),
}
"""The operation that folds values into each state, and the form of the values; a count has none beside the count."""


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
    def depends_on_order(self) -> bool:
        """Whether the order of the rows of a group may change its aggregates: sums of doubles by their last bit."""
        return self.floats > 0 or bool(self.from_rows)

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
    computation = computation_of(aggregate)
    if aggregate.distinct or computation.state is None or computation.final is None:
        return None
    final = FINALS[computation.final]
    if computation.state is PartialState.COUNT:
        if not aggregate.arguments:
            return Recipe(aggregate, final, 0)
        if aggregate.is_weighted:
            return Recipe(aggregate, final, _weight_slot(program, aggregate))
        counted = program.slot(kernels.COUNT, null_if_any(aggregate.arguments), Form.PRESENCE)
        return Recipe(aggregate, final, counted)
    op, form = _FOLDED[computation.state]
    value = aggregate.arguments[0]
    if form is Form.KEY and not is_narrow(value.type):
        return None
    is_weighted = aggregate.is_weighted
    counted = _weight_slot(program, aggregate) if is_weighted else program.slot(kernels.COUNT, value, form)
    return Recipe(aggregate, final, counted, program.slot(op, value, form))


def _weight_slot(program: _Program, aggregate: Aggregate) -> int:
    """The slot of the number of values: the lower word of the sum of what rows stand for, which is no larger."""
    return program.slot(kernels.SUM, aggregate.arguments[-1], Form.KEY)


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
