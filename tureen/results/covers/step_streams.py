"""Derived streams of closed steps, and queries with coarser steps that are composed of them.

Each step of the query is a union of steps of the derived stream, whose rows are partial aggregates: a count is the sum
of counts, a minimum the least of minima, an average a sum divided by a count (Data Stream Sharing, §3.3, Fig. 4). Only
states that do not depend on the order of tuples are composed: sums of integers and DECIMALs, but not of doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.plan import Plan
from tureen.errors import TureenError
from tureen.language import bind_query
from tureen.matching import Selector
from tureen.pot.relations import Relations
from tureen.pot.streams import Stream
from tureen.predicate import AllOf, Clause, columns_of, may_raise
from tureen.query import STEP_START, Expression, Grouping, Query, aggregate_name, key_name
from tureen.results.rows.ready import Ready
from tureen.schema import INTEGRAL
from tureen.sharing.covering import residual
from tureen.sharing.implication import Implication, implies
from tureen.sharing.step_windows import composes
from tureen.window import WHOLE, Steps

_COMPOSED = {"count", "sum", "min", "max"}


class StepAggregate(NamedTuple):
    """An aggregate of a step: its function, and its argument if it has one."""

    function: str
    argument: Expression | None


class StatePart(NamedTuple):
    """A part of the state of a group, and the column of the steps that has it; None if it is not needed."""

    op: int
    slot: int
    column: str | None
    is_presence: bool = False
    """Whether it only tells if the column has a value."""


@dataclass(frozen=True)
class StepStream:
    """A derived stream whose rows are the groups of steps that are over, or final."""

    stream: Stream
    base: Stream
    query: Query
    ready: Ready
    keys: Mapping[Expression, str]
    """The columns of the keys."""
    aggregates: Mapping[StepAggregate, str]
    """The columns of the aggregates that can be composed."""

    @property
    def steps(self) -> Steps:
        """Its steps, which follow one another."""
        assert self.query.steps is not None
        return self.query.steps

    @property
    def clause(self) -> Clause:
        """Its selection."""
        return self.query.stream.clause

    def number_of(self, time: int) -> int:
        """The step that contains a time."""
        return (time - self.steps.origin) // self.steps.width

    def start_of(self, number: int) -> int:
        """The time at which a step starts."""
        return self.steps.origin + number * self.steps.width


@dataclass(frozen=True)
class StepCover:
    """A query whose steps are composed of those of a derived stream."""

    source: StepStream
    rest: Clause
    """The factors of the query that the stream's selection does not imply, over keys."""
    selector: Selector
    keys: tuple[str, ...]
    """The column of each key of the query."""
    parts: tuple[StatePart, ...]


def step_stream(stream: Stream, sql: str, relations: Relations) -> StepStream | None:
    """A derived stream as steps of another one; None if its rows are not partial aggregates of steps."""
    try:
        query = bind_query(sql, relations.describe, functions=relations.function)
    except TureenError:
        return None
    base = relations.find(query.stream.relation)
    # The tuples of a remote stream are in replicas, each of which has a part of them.
    if not isinstance(base, Stream) or base.home is not None or not _has_plain_steps(query, base):
        return None
    assert query.grouping is not None
    columns = {output.value.column: output.name for output in query.outputs if output.value.column is not None}
    keeps_all = stream.retain is None or (base.retain is not None and stream.retain >= base.retain)
    if stream.keeps_needed or not keeps_all or columns.get(STEP_START) != stream.schema.time:
        return None
    keys = {key: columns.get(key_name(number)) for number, key in enumerate(query.grouping.keys)}
    aggregates = _aggregates(query.grouping, columns)
    known_keys = {key: name for key, name in keys.items() if name is not None}
    if len(known_keys) < len(keys):
        return None
    query = replace(query, final=False)
    return StepStream(stream, base, query, Ready.of(query, base.schema), known_keys, aggregates)


def _has_plain_steps(query: Query, base: Stream) -> bool:
    grouping, steps = query.grouping, query.steps
    if grouping is None or steps is None or query.joins or grouping.sets is not None or grouping.having is not None:
        return False
    uses_now = query.uses_now or query.at_now is not None
    if uses_now or query.overs or query.finishes or query.stream.window != WHOLE:
        return False
    is_tumbling = not steps.rows and not steps.partial and steps.width == steps.slide
    return is_tumbling and not base.schema.has_abstract_clock


def _aggregates(grouping: Grouping, columns: Mapping[str, str]) -> dict[StepAggregate, str]:
    known: dict[StepAggregate, str] = {}
    for number, aggregate in enumerate(grouping.aggregates):
        name = columns.get(aggregate_name(number))
        is_plain = not aggregate.distinct and not aggregate.order and len(aggregate.arguments) <= 1
        if name is not None and is_plain and aggregate.function in _COMPOSED:
            argument = aggregate.arguments[0] if aggregate.arguments else None
            known[StepAggregate(aggregate.function, argument)] = name
    return known


def step_cover(source: StepStream, ready: Ready) -> StepCover | None:
    """A query over the base stream as composed of steps; None if its answer may be another one."""
    query, grouping = ready.query, ready.query.grouping
    if grouping is None or query.steps is None or query.joins or len(ready.plans) != 1 or query.final:
        return None
    plans = ready.plans[0]
    if query.uses_now or not plans.uses_partials or plans.partial.distinct is not None or plans.partial.from_rows:
        return None
    if not composes(source.steps, query.steps) or query.steps.partial or not set(grouping.keys) <= source.keys.keys():
        return None
    clause, schema = query.stream.clause, source.base.schema
    # A factor that raises for a tuple of a step must raise; one that the steps have, too, has not.
    is_safe = all(factor in source.clause for factor in clause if may_raise(factor))
    if not is_safe or implies(schema, clause, source.clause) is not Implication.YES:
        return None
    rest = residual(schema, source.clause, clause)
    own_names = {name for key, name in source.keys.items() if key.column == name}
    if not columns_of(AllOf(rest)) <= own_names:
        return None
    parts = _state_parts(source, grouping, plans.partial)
    if parts is None:
        return None
    keys = tuple(source.keys[key] for key in grouping.keys)
    return StepCover(source, rest, Selector(rest, source.stream.schema), keys, parts)


def _state_parts(source: StepStream, grouping: Grouping, plan: Plan) -> tuple[StatePart, ...] | None:
    """Where each part of a group's state is read from; None if one of them is not among the steps."""
    counted = {
        aggregate.arguments[0]
        for aggregate in grouping.aggregates
        # The number of values counts, not only whether there are any.
        if aggregate.function in ("count", "avg") and len(aggregate.arguments) == 1
    }
    counts_rows = any(aggregate.function == "count" and not aggregate.arguments for aggregate in grouping.aggregates)
    parts: list[StatePart] = []
    for op, measure, slot in plan.program.tolist():
        if op == kernels.ROWS:
            column = source.aggregates.get(StepAggregate("count", None))
            if column is None and counts_rows:
                return None
            parts.append(StatePart(op, slot, column))
            continue
        part = _state_part(source, op, slot, plan.measures[measure].value, counted)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _state_part(
    source: StepStream, op: int, slot: int, value: Expression, counted: set[Expression]
) -> StatePart | None:
    argument = value if op != kernels.FSUM and value not in counted else _summed(source, value)
    known = {function: source.aggregates.get(StepAggregate(function, argument)) for function in _COMPOSED}
    match op:
        case kernels.COUNT if known["count"] is not None:
            return StatePart(op, slot, known["count"])
        case kernels.COUNT if value not in counted:
            present = known["sum"] or known["min"] or known["max"]
            return None if present is None else StatePart(op, slot, present, is_presence=True)
        case kernels.SUM if known["sum"] is not None:
            return StatePart(op, slot, known["sum"])
        case kernels.FSUM if known["sum"] is not None and argument is not None and argument.type.kind in INTEGRAL:
            return StatePart(op, slot, known["sum"])
        case kernels.MIN if known["min"] is not None:
            return StatePart(op, slot, known["min"])
        case kernels.MAX if known["max"] is not None:
            return StatePart(op, slot, known["max"])
    return None


def _summed(source: StepStream, value: Expression) -> Expression | None:
    """The argument of the steps that has a value: itself, or the integer that an average converts to a double."""
    arguments = [aggregate.argument for aggregate in source.aggregates if aggregate.argument is not None]
    if value in arguments:
        return value
    converted = {
        f"CAST({argument.sql} AS DOUBLE)": argument for argument in arguments if argument.type.kind in INTEGRAL
    }
    return converted.get(value.sql)
