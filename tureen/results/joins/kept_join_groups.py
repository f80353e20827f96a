"""Groups of joined tuples from partial aggregates of join runs.

A join run never changes, and its rows are in order of their earliest tuple. A strip is built over the rows that satisfy
the clauses of a query. Of a window, the rows whose earliest tuple is not before any begin, up to the first row with a
tuple after any end, are an interval of the strip. The rows beside it are compared with the windows one by one, and
grouped with those that are owed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.expression_values import evaluate
from tureen.aggregates.panes import merged
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Columns, Entries, Strip, fold_hits, make_strip, scratch_for
from tureen.joining.join_input import Numbers
from tureen.results.joins.joined import JoinedMatches
from tureen.results.joins.kept_rows import KeptRows, Selected
from tureen.results.rows.grouped import Plans, group_states, rows_of_states
from tureen.results.rows.kept import Structure
from tureen.stems.join_run import concatenated
from tureen.window import Span


@dataclass(frozen=True, eq=False)
class HitTimes:
    """The hits of a join run: which rows they are, the times of their earliest tuples, and by when all have ended."""

    rows: Selected
    earliest: Numbers
    latest_so_far: Numbers
    """For each hit, the time of the latest tuple of it and of all hits before it."""

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return self.rows.nbytes + self.earliest.nbytes + self.latest_so_far.nbytes


class JoinStructure(Structure):
    """The partial aggregates of one SELECT-FROM-WHERE over a kept join: a strip for each join run."""

    def __init__(self, plan: Plan) -> None:
        """Start empty; strips are computed on first use."""
        super().__init__(plan)
        self._times: dict[str, HitTimes] = {}

    def of_runs(self, kept: KeptRows, fields: pa.Schema) -> list[tuple[Strip, HitTimes]] | None:
        """The strips of all runs of a kept join; None if one of them cannot have a strip."""
        self.keep_only({run.path for run in kept.state.runs})
        strips = []
        for number, run in enumerate(kept.state.runs):
            strip = self.strip(run.path, partial(self._of_run, kept, number, fields))
            if strip is None:
                return None
            strips.append((strip, self._times[run.path]))
        return strips

    def account(self) -> None:
        """Update `nbytes`."""
        super().account()
        self._times = {path: times for path, times in self._times.items() if self.has_strip(path)}
        self.nbytes += sum(times.nbytes for times in self._times.values())

    def columns(self, matches: JoinedMatches, fields: pa.Schema) -> list[pa.Array]:
        """The keys and measures of joined tuples."""
        expressions = [*self.plan.keys, *(measure.value for measure in self.plan.measures)]
        return evaluate(expressions, matches.table(fields))

    def _of_run(self, kept: KeptRows, number: int, fields: pa.Schema) -> Strip:
        rows, tuples = kept.existing(number)
        matches = kept.matches(tuples)
        columns = self.columns(matches, fields)
        keys = len(self.plan.keys)
        codes = self.groups.codes(columns[:keys], len(tuples))
        strip = make_strip(self.plan, None, codes, columns[keys:], len(self.groups))
        latest = np.maximum.accumulate(_latest_times(matches))
        self._times[kept.state.runs[number].path] = HitTimes(rows, tuples.times, latest)
        return strip


def _latest_times(matches: JoinedMatches) -> Numbers:
    """The time of the latest tuple of each row."""
    times = [entry.times_at(matches.rows.rows[number]) for number, entry in enumerate(matches.inputs)]
    latest: Numbers = np.maximum.reduce([of_input for of_input in times if of_input is not None])
    return latest


@dataclass(frozen=True)
class HitInterval:
    """The hits of a strip that are in the windows: all from `first` to before `last`, and perhaps some beside them."""

    begin: int
    first: int
    last: int
    end: int

    @property
    def beside(self) -> Numbers:
        """The hits that have to be compared with the windows."""
        return np.concatenate([np.arange(self.begin, self.first), np.arange(self.last, self.end)])


def interval_of(times: HitTimes, begins: Sequence[int | None], ends: Sequence[int | None]) -> HitInterval:
    """The hits in windows of time, given the times at which they begin and end; None is open."""
    size = len(times.rows)
    known_begins = [time for time in begins if time is not None]
    known_ends = [time for time in ends if time is not None]
    begin = int(np.searchsorted(times.earliest, min(known_begins))) if len(known_begins) == len(begins) else 0
    end = int(np.searchsorted(times.earliest, max(known_ends), "right")) if len(known_ends) == len(ends) else size
    first = int(np.searchsorted(times.earliest, max(known_begins))) if known_begins else 0
    last = int(np.searchsorted(times.latest_so_far, min(known_ends), "right")) if known_ends else size
    end = max(begin, end)
    first = min(max(first, begin), end)
    return HitInterval(begin, first, min(max(last, first), end), end)


def kept_groups(
    kept: KeptRows, spans: Sequence[Span], plans: Plans, structure: JoinStructure, fields: pa.Schema
) -> pa.RecordBatch | None:
    """One row per group of the joined tuples in windows of time; None if an expression raises for a tuple."""
    plan = plans.partial
    begins = [selection.begin for selection in kept.selections]
    ends = [span.end for span in spans]
    owed = kept.owed()
    with structure.lock:
        strips = structure.of_runs(kept, fields)
        if strips is None:
            return None
        intervals = [interval_of(times, begins, ends) for _, times in strips]
        parts = [*owed]
        for number, ((_, times), interval) in enumerate(zip(strips, intervals, strict=True)):
            if interval.first > interval.begin or interval.end > interval.last:
                parts.append(kept.in_windows(number, times.rows[interval.beside]))
        others = concatenated(len(kept.selections), parts)
        kept.limits.check_rows(len(others) + sum(interval.last - interval.first for interval in intervals))
        of_others = _folded(structure, kept.matches(others), fields) if len(others) else None
        entries = _combined(plan, [strip for strip, _ in strips], intervals, len(structure.groups))
        if of_others is not None:
            entries = merged(plan, [entries, of_others], scratch_for(plan, len(structure.groups)))
        states = group_states(plan, structure.groups, entries)
    return rows_of_states(plans, plan, states, None)


def _folded(structure: JoinStructure, matches: JoinedMatches, fields: pa.Schema) -> Entries:
    """The states of the groups of rows."""
    plan, groups = structure.plan, structure.groups
    keys, columns = len(plan.keys), structure.columns(matches, fields)
    codes = groups.codes(columns[:keys], len(matches))
    measured = Columns(plan.measures, columns[keys:])
    starts, intervals = np.array([0, len(matches)], np.int64), np.zeros(1, np.int64)
    return fold_hits(plan, measured, codes, starts, intervals, scratch_for(plan, len(groups)))[1]


def _combined(plan: Plan, strips: Sequence[Strip], intervals: Sequence[HitInterval], groups: int) -> Entries:
    """The states of the groups of intervals of strips."""
    scratch = scratch_for(plan, groups)
    table = np.concatenate([np.empty(0, np.int64), *(strip.entry for strip in strips)]).reshape(-1, kernels.FIELDS)
    firsts = np.array([interval.first for interval in intervals], np.int64)
    lasts = np.array([interval.last for interval in intervals], np.int64)
    count = kernels.combine(plan.program, table, firsts, lasts, scratch)
    codes = scratch.touched[:count]
    return Entries(np.zeros(count, np.int64), codes, scratch.ints[codes], scratch.floats[codes])
