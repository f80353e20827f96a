"""Steps of an answer, composed of rows of a step stream and of tuples that it does not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.expression_values import evaluate
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.panes import changes, merged, step_entries
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Columns, Entries, fold_hits, scratch_for
from tureen.keys import GREATEST_KEY, LEAST_KEY
from tureen.pot.registered import RegisteredInput
from tureen.results.covers.step_streams import StatePart, StepCover
from tureen.results.rows.gather import fields_of
from tureen.results.rows.grouped import GroupStates
from tureen.results.rows.kept import Structure
from tureen.results.rows.ranges import Range, ranges_of
from tureen.results.rows.ready import Ready
from tureen.results.rows.selection import Selection
from tureen.results.rows.stepping import EARLIEST, Stepping, steps_at
from tureen.results.rows.watch import Watch
from tureen.results.snapshot.stream_state import Snapshot, StreamState
from tureen.stems.index import keys_of, stored_values
from tureen.window import Span

FEWER = 4
"""Steps are composed if all that was read for it is one row in this many tuples that would be aggregated, or fewer."""

MOST_INTERVALS = 64
"""The most intervals of time in which tuples are read beside the rows of steps."""

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Composition:
    """What an answer can be composed of, from one snapshot."""

    cover: StepCover
    snapshot: Snapshot
    last: int
    """The last step that the derived stream has."""
    inexact: frozenset[int]
    """The steps that tuples have reached since they were read."""
    uses: int = 0
    """How often the query was composed since its tuples were last aggregated, which serves later answers, too."""

    @property
    def base(self) -> StreamState:
        """The stream that the query names."""
        return self.snapshot.streams[self.cover.source.base.id]

    @property
    def state(self) -> StreamState:
        """The derived stream."""
        return self.snapshot.streams[self.cover.source.stream.id]


@dataclass(frozen=True)
class ComposedRanges:
    """Where the rows and tuples of a composed answer are."""

    rows: list[Range]
    """The rows of the derived stream, of inexact steps too."""
    tuples: list[list[Range]]
    """For each interval of time that the steps do not cover, the tuples of the base stream."""
    inexact: tuple[int, ...]
    """The inexact steps among the rows."""
    whole: int
    """The number of tuples in all steps."""

    @property
    def row_count(self) -> int:
        """The number of rows of the derived stream."""
        return _count(self.rows)

    @property
    def tuple_count(self) -> int:
        """The number of tuples of the base stream."""
        return sum(map(_count, self.tuples))


def composed_ranges(
    composition: Composition, ready: Ready, span: Span, now: int, horizon: int | None, kept: Structure | None
) -> tuple[Stepping, ComposedRanges | None]:
    """The steps of an answer, and what they are composed of.

    None if that costs more than to aggregate the tuples of which there are no partial aggregates in `kept`.
    """
    assert ready.query.steps is not None
    stepping = steps_at(composition.base, ready.query.steps, span, now, horizon)
    ranges = _ranges_of_steps(composition, stepping, horizon)
    if ranges is None:
        return stepping, None
    cost = FEWER * (composition.uses + 1) * (ranges.row_count + ranges.tuple_count)
    return stepping, ranges if cost <= _new_tuples(composition.base, stepping, kept) else None


def _new_tuples(base: StreamState, stepping: Stepping, kept: Structure | None) -> int:
    """The number of tuples in the segments of steps that have no partial aggregates yet."""
    used = [segment for segment, (first, last) in zip(base.segments, stepping.ranges, strict=True) if last > first]
    if kept is None:
        return sum(segment.rows for segment in used)
    with kept.lock:
        return sum(segment.rows for segment in used if not kept.has_strip(segment.key))


def _ranges_of_steps(composition: Composition, stepping: Stepping, horizon: int | None) -> ComposedRanges | None:
    source, base, steps = composition.cover.source, composition.base, stepping.steps
    begin = None if stepping.first == EARLIEST else steps.origin + stepping.first * steps.slide
    end = steps.origin + stepping.last * steps.slide + steps.width
    covered = min(source.start_of(composition.last + 1), end)
    if begin is not None and covered <= begin:
        return None
    inexact = tuple(
        sorted(
            number
            for number in composition.inexact
            if source.start_of(number) < covered and (begin is None or source.start_of(number) >= begin)
        )
    )
    intervals = [(source.start_of(number), source.start_of(number + 1)) for number in inexact]
    intervals += [(covered, end)] if covered < end else []
    if len(intervals) > MOST_INTERVALS:
        return None
    tuples = [ranges_of(base.segments, Span(first, last - 1), horizon) for first, last in intervals]
    rows = ranges_of(composition.state.segments, Span(begin, covered - 1), None)
    return ComposedRanges(rows, tuples, inexact, _count(stepping.ranges))


def composed_groups(
    composition: Composition, ranges: ComposedRanges, ready: Ready, stepping: Stepping, watch: Watch
) -> GroupStates:
    """The groups of an answer in its steps."""
    cover, plan = composition.cover, ready.plans[0].partial
    rows, starts = _step_rows(composition, ranges, watch)
    tuples, times = _tuples(composition, ranges, ready, watch)
    groups = GroupNumbers([key.type for key in plan.keys])
    evaluated = evaluate([*plan.keys, *(measure.value for measure in plan.measures)], tuples)
    codes = groups.codes(evaluated[: len(plan.keys)], tuples.num_rows)
    codes_of_rows = groups.codes([rows.column(name).combine_chunks() for name in cover.keys], rows.num_rows)
    scratch = scratch_for(plan, max(len(groups), 1))
    origin, pane = stepping.steps.origin, stepping.pane
    panes = (times - origin) // pane
    firsts = changes(panes)
    columns = Columns(plan.measures, evaluated[len(plan.keys) :])
    _, of_tuples = fold_hits(plan, columns, codes, firsts, panes[firsts[:-1]], scratch)
    of_rows = _entries(plan, cover.parts, rows, (starts - origin) // pane, codes_of_rows)
    by_pane = merged(plan, [of_rows, of_tuples], scratch)
    steps = stepping.over(by_pane.intervals[changes(by_pane.intervals)[:-1]])
    entries = step_entries(plan, by_pane, steps, *stepping.in_panes, scratch)
    return GroupStates(groups.columns(entries.codes), groups.ranks(entries.codes), entries, {})


def _step_rows(composition: Composition, ranges: ComposedRanges, watch: Watch) -> tuple[pa.Table, Times]:
    """The rows of exact steps, and the start of each."""
    cover, state = composition.cover, composition.state
    schema, time = state.stream.schema, state.stream.schema.time_column
    columns = [part.column for part in cover.parts if part.column is not None]
    fields = fields_of(schema, list(dict.fromkeys([time, *cover.keys, *columns])))
    leaf = RegisteredInput(stream_id=state.stream.id)
    rows = Selection(state, leaf, cover.selector, ranges.rows, None, watch).matches().table(fields)
    starts = _times(rows, time)
    if ranges.inexact:
        inexact = np.array([cover.source.start_of(number) for number in ranges.inexact])
        exact = ~np.isin(starts, inexact)
        rows, starts = rows.filter(pa.array(exact)), starts[exact]
    return rows, starts


def _tuples(composition: Composition, ranges: ComposedRanges, ready: Ready, watch: Watch) -> tuple[pa.Table, Times]:
    """The tuples that the steps lack, and their times, in order."""
    base, plan = composition.base, ready.plans[0].partial
    time = base.stream.schema.time_column
    values = [*plan.keys, *(measure.value for measure in plan.measures)]
    fields = fields_of(base.stream.schema, sorted({name for value in values for name in value.columns} | {time}))
    leaf = RegisteredInput(stream_id=base.stream.id)
    # The intervals follow one another.
    parts = [
        Selection(base, leaf, ready.selector, intervals, None, watch).matches().table(fields)
        for intervals in ranges.tuples
    ]
    tuples = pa.concat_tables(parts) if parts else fields.empty_table()
    return tuples, _times(tuples, time)


def _entries(
    plan: Plan, parts: Iterable[StatePart], rows: pa.Table, panes: Times, codes: npt.NDArray[np.int32]
) -> Entries:
    """The rows of steps as states of groups in panes."""
    ints = np.zeros((rows.num_rows, plan.ints), np.int64)
    floats = np.zeros((rows.num_rows, plan.floats), np.float64)
    for op, slot, column, is_presence in parts:
        if column is None:
            ints[:, slot] = 1
            continue
        values = rows.column(column).combine_chunks()
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        if is_presence:
            ints[:, slot] = valid
        elif op == kernels.SUM:
            ints[:, slot : slot + 2] = np.where(valid[:, None], _words(values), 0)
        elif op == kernels.FSUM:
            sums = np.where(valid, keys_of(values), 0)
            # Both parts are exact, as are their sums.
            floats[:, slot], floats[:, slot + 1] = (sums >> 32) * 2.0**32, sums & 0xFFFFFFFF
        else:
            empty = {kernels.MIN: GREATEST_KEY, kernels.MAX: LEAST_KEY}.get(op, 0)
            ints[:, slot] = np.where(valid, keys_of(values), empty)
    order = np.argsort(panes, kind="stable")
    return Entries(panes, codes, ints, floats).take(order)


def _words(values: pa.Array) -> npt.NDArray[np.int64]:
    """The lower and the higher words of integers or DECIMALs."""
    stored = stored_values(values)
    if stored.ndim == 2:
        return stored
    numbers = stored.astype(np.int64)
    return np.stack([numbers, numbers >> 63], axis=1)


def _times(rows: pa.Table, name: str) -> Times:
    times: Times = rows.column(name).cast(pa.int64()).to_numpy()
    return times


def _count(ranges: Iterable[Range]) -> int:
    return sum(last - first for first, last in ranges)
