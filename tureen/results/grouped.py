"""Groups of an answer: combined from the partial aggregates that are kept, or computed from the rows.

The first costs the number of runs and of groups, not of tuples. The second is for aggregates that need all of their
rows at once, and for windows in whose runs an expression raises on some other tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.aggregate_kernels import States
from tureen.aggregates.distinct import put_together
from tureen.aggregates.expression_values import evaluate, numbered, rows_where, with_now
from tureen.aggregates.finals import column_of
from tureen.aggregates.groups import Groups
from tureen.aggregates.holistic import CODE, PLACE, holistic_columns
from tureen.aggregates.panes import changes, merged, pane_entries, step_entries
from tureen.aggregates.plan import Plan, plan_of
from tureen.aggregates.strip import Columns, Entries, Strip, fold_hits, joined, scratch_for
from tureen.matching import Selector
from tureen.pot.queries import Registered
from tureen.predicate import Clause, dump_clause
from tureen.query import NOW, Aggregate, Expression, Grouping, Query, aggregate_name, key_name
from tureen.results.gather import fields_of, gather
from tureen.results.kept import Structure
from tureen.results.ranges import Range
from tureen.results.segment import Hits
from tureen.results.stepping import Stepping
from tureen.results.view import StreamState
from tureen.results.watch import Watch
from tureen.schema import Kind


@dataclass(frozen=True)
class Plans:
    """The two ways to the groups of a query."""

    kept: Plan
    rows: Plan
    keeps: bool
    """Whether partial aggregates serve it; what depends on NOW is another value at the next invocation."""
    shape: str
    """What it has in common with the groupings that share its partial aggregates."""
    always: bool
    """Whether there is a row even where there is no group."""

    @classmethod
    def of(cls, query: Query) -> tuple[Plans, ...]:
        """Plan both ways for each grouping of a query; none where it has no groups."""
        grouping = query.grouping
        if grouping is None:
            return ()
        found = []
        for numbers in grouping.each:
            single = Grouping(tuple(grouping.keys[number] for number in numbers), grouping.aggregates)
            kept = plan_of(single)
            moves = query.at_now is not None or any(NOW in value.columns for value in single.over_rows)
            keeps = not kept.from_rows and not moves
            rows = plan_of(single, in_two_goes=False)
            found.append(cls(kept, rows, keeps, "", grouping.always).with_clause(query.clause))
        return tuple(found)

    def with_clause(self, clause: Clause) -> Plans:
        """The same for a query with another clause."""
        return replace(self, shape=f"{dump_clause(clause)} {self.kept.shape}")


@dataclass(frozen=True)
class Asked:
    """What is asked of a stream: a query's tuples within some ranges, perhaps in steps."""

    state: StreamState
    registered: Registered
    selector: Selector
    ranges: Sequence[Range]
    stepping: Stepping | None
    watch: Watch
    now: int | None = None
    """The NOW of the invocation, where the query uses it outside its window."""
    at_now: Expression | None = None
    """What the tuples must satisfy beside the query's clause."""

    @property
    def held(self) -> int:
        """How many tuples the window holds, whether they satisfy the query or not."""
        if self.stepping is not None:
            return self.stepping.held
        return sum(last - first for first, last in self.ranges)

    def hits(self) -> list[Hits]:
        """The query's tuples, segment by segment."""
        began = perf_counter_ns()
        found = [
            segment.hits(self.registered, self.selector, first, last)
            for segment, (first, last) in zip(self.state.segments, self.ranges, strict=True)
            if last > first
        ]
        if self.registered.clause_id:
            self._note(found, perf_counter_ns() - began)
        return [one for one in found if len(one.rows)]

    def _note(self, found: list[Hits], nanoseconds: int) -> None:
        """Let whoever decides what to keep ready know what was asked for; a tail is scanned in any case."""
        indexed = sum(
            last - first
            for segment, (first, last) in zip(self.state.segments, self.ranges, strict=True)
            if segment.matched_seq is not None
        )
        if indexed:
            query = self.registered
            hits = sum(len(one.rows) for one in found)
            self.watch.note(query.clause_id, query.stream_id, indexed, hits, nanoseconds, kept=query.number is not None)


@dataclass(frozen=True)
class Found:
    """The groups of an answer: their keys and how these sort, their states, and aggregates that follow from none."""

    keys: list[pa.Array]
    ranks: npt.NDArray[np.int64]
    entries: Entries
    others: dict[int, pa.Array]


def grouped(asked: Asked, plans: Plans, structure: Structure) -> pa.RecordBatch:
    """One row per group (and step): its keys, its aggregates, and the step's start and end."""
    found = _from_partials(asked, plans.kept, structure) if plans.keeps else None
    plan = plans.kept
    if found is None:
        plan = plans.rows
        found = _from_rows(asked, plan)
    if plans.always and not len(found.entries.codes) and asked.stepping is None:
        # Without GROUP BY there is one row, even over nothing.
        return _nothing(plan)
    return _rows(asked, plan, found)


def _from_partials(asked: Asked, plan: Plan, structure: Structure) -> Found | None:
    """The groups from what is kept; None where nothing can be."""
    with structure.lock:
        places = [place for place, (first, last) in enumerate(asked.ranges) if last > first]
        strips = structure.strips(asked.state, places, asked.registered, asked.selector)
        if strips is None:
            return None
        groups = structure.groups
        scratch = scratch_for(plan, len(groups))
        if asked.stepping is None:
            entries = _combined(asked, plan, strips, scratch)
        else:
            entries = _stepped(asked, asked.stepping, plan, strips, scratch)
            structure.account()
        if plan.distinct is None:
            return Found(groups.columns(entries.codes), groups.ranks(entries.codes), entries, {})
        outer, entries, columns = put_together(plan, plan.distinct, groups, entries)
    others = dict(zip(plan.distinct.numbers, columns, strict=True))
    return Found(outer.columns(entries.codes), outer.ranks(entries.codes), entries, others)


def _stepped(
    asked: Asked, stepping: Stepping, plan: Plan, strips: Sequence[tuple[int, Strip]], scratch: States
) -> Entries:
    parts = [
        pane_entries(strip, stepping.axis.panes(strip, number, stepping.pane, scratch), *asked.ranges[number], scratch)
        for number, strip in strips
    ]
    by_pane = merged(plan, parts, scratch)
    steps = stepping.over(by_pane.places[changes(by_pane.places)[:-1]])
    return step_entries(plan, by_pane, steps, *stepping.in_panes, scratch)


def _combined(asked: Asked, plan: Plan, strips: Sequence[tuple[int, Strip]], scratch: States) -> Entries:
    if not strips:
        return joined(plan, [])
    firsts = np.array([asked.ranges[place][0] for place, _ in strips], np.int64)
    lasts = np.array([asked.ranges[place][1] for place, _ in strips], np.int64)
    table = np.concatenate([strip.entry for _, strip in strips]).reshape(len(strips), -1)
    count = kernels.combine(plan.program, table, firsts, lasts, scratch)
    codes = scratch.touched[:count]
    return Entries(np.zeros(count, np.int64), codes, scratch.ints[codes], scratch.floats[codes])


def _from_rows(asked: Asked, plan: Plan) -> Found:
    schema = asked.state.stream.schema
    hits = asked.hits()
    arguments = [one for aggregate in plan.aggregates for one in aggregate.arguments]
    values = [*plan.keys, *arguments, *([asked.at_now] if asked.at_now is not None else [])]
    names = {name for one in values for name in one.columns} - {NOW} | {schema.time_column}
    rows, places = selected(asked, fields_of(schema, sorted(names)), hits)
    groups = Groups([key.type for key in plan.keys])
    found = evaluate([*plan.keys, *(measure.value for measure in plan.measures)], rows)
    codes = groups.codes(found[: len(plan.keys)], rows.num_rows)
    columns = Columns(plan.measures, found[len(plan.keys) :])
    starts = changes(places)
    scratch = scratch_for(plan, max(len(groups), 1))
    _, entries = fold_hits(plan, columns, codes, starts, places[starts[:-1]], scratch)
    others = _holistic(plan, rows, places, codes)
    return Found(groups.columns(entries.codes), groups.ranks(entries.codes), entries, others)


def selected(asked: Asked, fields: pa.Schema, hits: Sequence[Hits]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows of some hits, with NOW beside them where it is used, and the step of each.

    With steps, every row is there once for each step that it belongs to, step by step.
    """
    rows = gather(asked.state.stream.schema, fields, hits)
    rows = rows if asked.now is None else with_now(rows, asked.now)
    places = np.zeros(rows.num_rows, np.int64)
    if asked.stepping is None and asked.at_now is None:
        return rows, places
    source = np.arange(rows.num_rows)
    if asked.stepping is not None:
        source, places = asked.stepping.of_each(asked.stepping.axis.places(hits, rows))
    if asked.at_now is not None:
        holds = np.zeros(rows.num_rows, np.bool_)
        holds[rows_where(asked.at_now, rows)] = True
        source, places = source[holds[source]], places[holds[source]]
    order = np.argsort(places, kind="stable")
    return rows.take(pa.array(source[order])), places[order]


def _holistic(
    plan: Plan, rows: pa.Table, places: npt.NDArray[np.int64], codes: npt.NDArray[np.int32]
) -> dict[int, pa.Array]:
    wanted = plan.from_rows
    if not wanted or not rows.num_rows:
        return {}
    table = numbered(rows).append_column(PLACE, pa.array(places)).append_column(CODE, pa.array(codes))
    found = holistic_columns([plan.aggregates[number] for number in wanted], table)
    return dict(zip(wanted, found, strict=True))


def _rows(asked: Asked, plan: Plan, found: Found) -> pa.RecordBatch:
    """Groups as rows, in order of their steps and then of their keys."""
    found = _in_order(found)
    entries = found.entries
    columns = {key_name(number): key for number, key in enumerate(found.keys)}
    for number, (recipe, aggregate) in enumerate(zip(plan.recipes, plan.aggregates, strict=True)):
        if recipe is not None:
            column = column_of(recipe, entries.ints, entries.floats)
        elif number in found.others:
            column = found.others[number]
        else:
            column = pa.nulls(0, aggregate.type.arrow)
        columns[aggregate_name(number)] = column
    if asked.stepping is not None:
        columns |= asked.stepping.columns(entries.places)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _in_order(found: Found) -> Found:
    """The groups in order of their steps and then of their keys."""
    if len(found.ranks) == 1:
        return found
    order = np.lexsort((found.ranks, found.entries.places))
    picked = pa.array(order)
    return Found(
        [key.take(picked) for key in found.keys],
        found.ranks[order],
        found.entries.take(order),
        {number: column.take(picked) for number, column in found.others.items()},
    )


def _nothing(plan: Plan) -> pa.RecordBatch:
    """The one row of aggregates over no tuples."""
    return pa.record_batch(
        {
            aggregate_name(number): pa.array([_of_nothing(one)], one.type.arrow)
            for number, one in enumerate(plan.aggregates)
        }
    )


def _of_nothing(aggregate: Aggregate) -> int | list[Any] | None:
    """An aggregate over no tuples: a count is 0, a list is empty, all else is NULL."""
    if aggregate.function == "count":
        return 0
    return [] if aggregate.type.kind is Kind.ARRAY else None
