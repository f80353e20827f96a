"""Groups of an answer: combined from cached partial aggregates, or computed from the rows.

The cost of the former depends on the number of runs and groups, not of tuples. The latter is for holistic aggregates,
and for runs in which an expression raises an error on a tuple outside the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.aggregate_kernels import States
from tureen.aggregates.distinct import combine_distinct
from tureen.aggregates.expression_values import evaluate, numbered
from tureen.aggregates.finals import column_of
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.holistic import CODE, STEP, holistic_columns
from tureen.aggregates.panes import changes, merged, pane_entries, step_entries
from tureen.aggregates.plan import Plan, plan_of
from tureen.aggregates.strip import Columns, Entries, Strip, concat_entries, fold_hits, scratch_for
from tureen.predicate import Clause, dump_clause
from tureen.query import NOW, Aggregate, Grouping, Query, aggregate_name, key_name
from tureen.results.rows.gather import fields_of
from tureen.results.rows.kept import Structure
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import Stepping
from tureen.schema import Kind


@dataclass(frozen=True)
class Plans:
    """The two plans of a grouping: over partial aggregates, and over rows."""

    partial: Plan
    rows: Plan
    uses_partials: bool
    """Whether partial aggregates can be used: not for expressions that depend on NOW."""
    shape: str
    """The key of the partial aggregates: groupings with the same shape share them."""
    always: bool
    """Whether an answer without groups has a row."""

    @classmethod
    def of(cls, query: Query, clause: Clause) -> tuple[Plans, ...]:
        """The plans of each grouping of a query with that clause; empty if it has no groups."""
        grouping = query.grouping
        if grouping is None:
            return ()
        plans = []
        for numbers in grouping.each:
            single = Grouping(tuple(grouping.keys[number] for number in numbers), grouping.aggregates)
            partial = plan_of(single)
            depends_on_now = query.at_now is not None or any(NOW in value.columns for value in single.over_rows)
            uses_partials = not partial.from_rows and not depends_on_now
            rows = plan_of(single, two_phase=False)
            plans.append(cls(partial, rows, uses_partials, "", grouping.always).with_clause(clause))
        return tuple(plans)

    def with_clause(self, clause: Clause) -> Plans:
        """The plans of a query that differs in its clause only."""
        return replace(self, shape=f"{dump_clause(clause)} {self.partial.shape}")


@dataclass(frozen=True)
class GroupStates:
    """The groups of an answer: their keys, the ranks of the keys, their states, and aggregates without states."""

    keys: list[pa.Array]
    ranks: npt.NDArray[np.int64]
    entries: Entries
    others: dict[int, pa.Array]


def grouped(selection: Selection, plans: Plans, structure: Structure) -> pa.RecordBatch:
    """One row per group (and step): its keys, its aggregates, and the step's start and end."""
    states = _from_partials(selection, plans.partial, structure) if plans.uses_partials else None
    if states is None:
        rows, steps = selection.rows(_fields_for(selection, plans.rows))
        return groups_of_rows(plans, rows, steps, selection.stepping)
    return rows_of_states(plans, plans.partial, states, selection.stepping)


def groups_of_rows(
    plans: Plans, rows: pa.Table, steps: npt.NDArray[np.int64], stepping: Stepping | None
) -> pa.RecordBatch:
    """One row per group (and step) of rows, given the step of each, which ascend."""
    return rows_of_states(plans, plans.rows, group_rows(plans.rows, rows, steps), stepping)


def rows_of_states(plans: Plans, plan: Plan, states: GroupStates, stepping: Stepping | None) -> pa.RecordBatch:
    """One row per group (and step), given their states."""
    if plans.always and not len(states.entries.codes) and stepping is None:
        # Without GROUP BY there is one row, even without tuples.
        return empty_row(plan)
    return _rows(plan, states, stepping)


def _from_partials(selection: Selection, plan: Plan, structure: Structure) -> GroupStates | None:
    """The groups from cached partial aggregates; None if a segment has none."""
    with structure.lock:
        numbers = [number for number, (first, last) in enumerate(selection.ranges) if last > first]
        strips = structure.strips(selection.state, numbers, selection.query_input, selection.selector)
        if strips is None:
            return None
        groups = structure.groups
        scratch = scratch_for(plan, len(groups))
        if selection.stepping is None:
            entries = _combined(selection, plan, strips, scratch)
        else:
            entries = _stepped(selection, selection.stepping, plan, strips, scratch)
            structure.account()
        return group_states(plan, groups, entries)


def group_states(plan: Plan, groups: GroupNumbers, entries: Entries) -> GroupStates:
    """The groups of an answer, given their states, and of DISTINCT values the states of each value."""
    if plan.distinct is None:
        return GroupStates(groups.columns(entries.codes), groups.ranks(entries.codes), entries, {})
    outer, entries, columns = combine_distinct(plan, plan.distinct, groups, entries)
    others = dict(zip(plan.distinct.numbers, columns, strict=True))
    return GroupStates(outer.columns(entries.codes), outer.ranks(entries.codes), entries, others)


def _stepped(
    selection: Selection, stepping: Stepping, plan: Plan, strips: Sequence[tuple[int, Strip]], scratch: States
) -> Entries:
    parts = []
    for number, strip in strips:
        panes = stepping.axis.panes(strip, number, stepping.pane, scratch)
        parts.append(pane_entries(strip, panes, *selection.ranges[number], scratch))
    by_pane = merged(plan, parts, scratch)
    steps = stepping.over(by_pane.intervals[changes(by_pane.intervals)[:-1]])
    return step_entries(plan, by_pane, steps, *stepping.in_panes, scratch)


def _combined(selection: Selection, plan: Plan, strips: Sequence[tuple[int, Strip]], scratch: States) -> Entries:
    if not strips:
        return concat_entries(plan, [])
    firsts = np.array([selection.ranges[number][0] for number, _ in strips], np.int64)
    lasts = np.array([selection.ranges[number][1] for number, _ in strips], np.int64)
    table = np.concatenate([strip.entry for _, strip in strips]).reshape(len(strips), -1)
    count = kernels.combine(plan.program, table, firsts, lasts, scratch)
    codes = scratch.touched[:count]
    return Entries(np.zeros(count, np.int64), codes, scratch.ints[codes], scratch.floats[codes])


def _fields_for(selection: Selection, plan: Plan) -> pa.Schema:
    """The stored columns that keys, arguments and conditions are computed from."""
    schema = selection.state.stream.schema
    arguments = [argument for aggregate in plan.aggregates for argument in aggregate.arguments]
    values = [*plan.keys, *arguments, *([selection.at_now] if selection.at_now is not None else [])]
    names = {name for value in values for name in value.columns} - {NOW} | {schema.time_column}
    return fields_of(schema, sorted(names))


def group_rows(plan: Plan, rows: pa.Table, steps: npt.NDArray[np.int64]) -> GroupStates:
    """The groups of rows, given the step of each, which ascend."""
    groups = GroupNumbers([key.type for key in plan.keys])
    evaluated = evaluate([*plan.keys, *(measure.value for measure in plan.measures)], rows)
    codes = groups.codes(evaluated[: len(plan.keys)], rows.num_rows)
    columns = Columns(plan.measures, evaluated[len(plan.keys) :])
    starts = changes(steps)
    scratch = scratch_for(plan, max(len(groups), 1))
    _, entries = fold_hits(plan, columns, codes, starts, steps[starts[:-1]], scratch)
    others = _holistic(plan, rows, steps, codes)
    return GroupStates(groups.columns(entries.codes), groups.ranks(entries.codes), entries, others)


def _holistic(
    plan: Plan, rows: pa.Table, steps: npt.NDArray[np.int64], codes: npt.NDArray[np.int32]
) -> dict[int, pa.Array]:
    numbers = plan.from_rows
    if not numbers or not rows.num_rows:
        return {}
    table = numbered(rows).append_column(STEP, pa.array(steps)).append_column(CODE, pa.array(codes))
    columns = holistic_columns([plan.aggregates[number] for number in numbers], table)
    return dict(zip(numbers, columns, strict=True))


def _rows(plan: Plan, states: GroupStates, stepping: Stepping | None) -> pa.RecordBatch:
    """Groups as rows, in order of their steps and then of their keys."""
    return state_rows(plan, _in_order(states), stepping)


def state_rows(plan: Plan, states: GroupStates, stepping: Stepping | None) -> pa.RecordBatch:
    """Groups as rows."""
    entries = states.entries
    columns = {key_name(number): key for number, key in enumerate(states.keys)}
    for number, (recipe, aggregate) in enumerate(zip(plan.recipes, plan.aggregates, strict=True)):
        if recipe is not None:
            column = column_of(recipe, entries.ints, entries.floats)
        elif number in states.others:
            column = states.others[number]
        else:
            column = pa.nulls(0, aggregate.type.arrow)
        columns[aggregate_name(number)] = column
    if stepping is not None:
        columns |= stepping.columns(entries.intervals)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _in_order(states: GroupStates) -> GroupStates:
    """The groups in order of their steps and then of their keys."""
    if len(states.ranks) == 1:
        return states
    order = np.lexsort((states.ranks, states.entries.intervals))
    indexes = pa.array(order)
    return GroupStates(
        [key.take(indexes) for key in states.keys],
        states.ranks[order],
        states.entries.take(order),
        {number: column.take(indexes) for number, column in states.others.items()},
    )


def empty_row(plan: Plan) -> pa.RecordBatch:
    """The row of aggregates over no tuples."""
    return pa.record_batch(
        {
            aggregate_name(number): pa.array([_empty_value(aggregate)], aggregate.type.arrow)
            for number, aggregate in enumerate(plan.aggregates)
        }
    )


def _empty_value(aggregate: Aggregate) -> int | list[Any] | None:
    """An aggregate over no tuples: a count is 0, a list is empty, other values are NULL."""
    if aggregate.function == "count":
        return 0
    return [] if aggregate.type.kind is Kind.ARRAY else None
