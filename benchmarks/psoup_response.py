"""Response times of NoMat, PSoup-P and PSoup-C (§5.2.2, §5.2.3, §5.5.1).

Every query is registered once for each size of window in two pots, lazy in one (NoMat) and eager in the other
(PSoup-P), and invoked through the engine. PSoup-C answers by the same steps from the second pot's runs, except that it
does not search for the rows. Tuples arrive in batches; after each, all answers must equal numpy's, and then all queries
are invoked in turns. NOW is the last tuple's time. Finding the rows alone excludes most of the steps that all three
have in common: asking the catalog whether something changed, and copying the tuples into an Arrow table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_window_results import CellOf, WindowResults
from benchmarks.psoup_workload import Workload
from tureen.language import bind_query
from tureen.matching import Selector
from tureen.position import Mark, Position
from tureen.queries import compile_clauses
from tureen.query import NamedRelation
from tureen.results.answer import Answer, Bounds
from tureen.results.rows.gather import StreamMatches, fields_of
from tureen.results.rows.ranges import ranges_of
from tureen.results.snapshot.segment import Hits
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.run import OpenRun, open_run
from tureen.testing.manual_engine import ManualEngine

NOMAT, PARTIAL, COMPLETE = "NoMat", "PSoup-P", "PSoup-C"
NAMES = (NOMAT, PARTIAL, COMPLETE)

Curves = dict[str, dict[int, float]]
"""Milliseconds, or tuples per second, by variant and by size of the window or number of queries."""


@dataclass(frozen=True)
class InvocationPlan:
    """Tuples that fill the largest window, then batches; all queries are invoked after each.

    Queries are invoked in several rounds, and the best round of each query counts.
    """

    batch: int
    batches: int
    rounds: int

    def rows(self, windows: Sequence[int]) -> int:
        """The total number of tuples."""
        return max(windows) + self.batch * self.batches


class ExperimentPot:
    """A pot with every query of a workload for every size of window."""

    def __init__(self, root: Path, workload: Workload, windows: Sequence[int], *, materialize: bool) -> None:
        """Create the pot, without tuples."""
        self.engine = ManualEngine(root)
        self.engine.create_stream("s", workload.columns, time=workload.time)
        texts = {size: [workload.sql(condition, size) for condition in workload.conditions] for size in windows}
        self.handles = {
            size: [self.engine.register(sql, materialize=materialize) for sql in sqls] for size, sqls in texts.items()
        }
        self.engine.compile()
        self._windows = {
            size: bind_query(sqls[0], lambda _: NamedRelation("s", workload.schema)).stream.window
            for size, sqls in texts.items()
        }
        self._selectors = [Selector(clause, workload.schema) for clause in workload.clauses()]

    def invoke(self, size: int, query: int, now: int) -> Answer:
        """The engine's answer."""
        return self.engine.invoke(self.handles[size][query], now)

    def find(self, size: int, query: int, now: int) -> list[Hits]:
        """The rows of the engine's answer, by the engine's own steps."""
        view = self.engine.invoker.view
        registered = view.query(self.handles[size][query])
        state = view.stream(registered.stream_ids[0])
        ranges = ranges_of(state.segments, self._windows[size].span(now), None)
        return [
            segment.hits(registered.stream, self._selectors[query], first, last)
            for segment, (first, last) in zip(state.segments, ranges, strict=True)
            if last > first
        ]


class Complete:
    """PSoup-C next to a pot: it stores the results of the pot's queries in their windows."""

    def __init__(self, pot: ExperimentPot, workload: Workload) -> None:
        """Start without results."""
        self._pot, self._workload = pot, workload
        clauses = workload.clauses()
        run = compile_clauses(range(len(clauses)), clauses, workload.schema)
        self._results: dict[int, tuple[WindowResults, CellOf]] = {}
        for size in pot.handles:
            results = WindowResults(len(clauses), size + workload.per_step, workload.span(size))
            self._results[size] = results, results.shared(run, workload.time)
        self._runs: list[OpenRun] = []
        self._starts: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def take(self) -> None:
        """Store the results of the runs that were added since the last call."""
        self._pot.engine.invoker.view.refresh()
        for run in self._state().runs[len(self._runs) :]:
            opened = open_run(self._pot.engine.catalog.root / run.path, self._workload.schema)
            self._runs.append(opened)
            for block in opened.blocks:
                for _, add in self._results.values():
                    add(block)
        sizes = [block.rows for run in self._runs for block in run.blocks]
        self._starts = np.cumsum([0, *sizes[:-1]])

    def invoke(self, size: int, query: int, now: int) -> Answer:
        """The answer as `Invoker` returns it, except for where the rows come from."""
        workload, view = self._workload, self._pot.engine.invoker.view
        view.refresh()
        view.query(self._pot.handles[size][query])
        state = self._state()
        hits = self.find(size, query, now)
        return Answer(
            StreamMatches(workload.schema, hits).table(fields_of(workload.schema, workload.schema.names)),
            Bounds.of(now - workload.span(size), now),
            str(Position(state.seq, {state.stream.id: Mark(state.stream.next_id)})),
            complete=True,
        )

    def find(self, size: int, query: int, now: int) -> list[Hits]:  # noqa: ARG002 - the results are of the last NOW
        """The stored rows."""
        rows, starts = self._results[size][0].located(query, self._starts)
        hits, block = [], 0
        for segment, run in zip(self._state().segments, self._runs, strict=True):
            after = block + len(run.blocks)
            low, high = int(starts[block]), int(starts[after])
            if high > low:
                hits.append(Hits(segment, run, rows[low:high], starts[block : after + 1] - low))
            block = after
        return hits

    def _state(self) -> StreamState:
        view = self._pot.engine.invoker.view
        first = next(iter(self._pot.handles.values()))[0]
        return view.stream(view.query(first).stream_ids[0])


Methods = Mapping[str, Callable[[int, int, int], object]]
"""For each variant, a function of the size of the window, the number of the query and NOW."""


def response_times(
    root: Path, workload: Workload, windows: Sequence[int], plan: InvocationPlan
) -> tuple[Curves, Curves]:
    """Milliseconds of an invocation, and of finding the rows alone: the mean over all queries and batches."""
    root.mkdir(parents=True)
    lazy = ExperimentPot(root / "lazy", workload, windows, materialize=False)
    eager = ExperimentPot(root / "eager", workload, windows, materialize=True)
    complete = Complete(eager, workload)
    answering: dict[str, Callable[[int, int, int], Answer]]
    answering = {NOMAT: lazy.invoke, PARTIAL: eager.invoke, COMPLETE: complete.invoke}
    finding = {NOMAT: lazy.find, PARTIAL: eager.find, COMPLETE: complete.find}
    whole: list[Curves] = []
    rows: list[Curves] = []
    arrived = 0
    for size in (max(windows), *[plan.batch] * plan.batches):
        part = workload.table.slice(arrived, size)
        arrived += size
        for pot in (lazy, eager):
            pot.engine.push("s", part)
        complete.take()
        if arrived == max(windows):
            continue
        now = int(workload.times[arrived - 1])
        verify(workload, windows, answering, arrived)
        _check_paths(lazy, eager, now)
        whole.append(in_turns(answering, windows, len(workload.conditions), now, plan.rounds))
        rows.append(in_turns(finding, windows, len(workload.conditions), now, plan.rounds))
    for pot in (lazy, eager):
        pot.engine.close()
    return mean_curves(whole), mean_curves(rows)


def verify(
    workload: Workload,
    windows: Sequence[int],
    methods: Mapping[str, Callable[[int, int, int], Answer]],
    arrived: int,
) -> None:
    """Check every answer of every method against numpy's, row by row."""
    now, begins = int(workload.times[arrived - 1]), {size: workload.begin(size, arrived) for size in windows}
    for number, condition in enumerate(workload.conditions):
        matches = workload.truth(condition, 0, arrived)
        for size, begin in begins.items():
            expected = workload.table.take(pa.array(matches[np.searchsorted(matches, begin) :]))
            for name, answer in methods.items():
                table = answer(size, number, now).table
                assert table.equals(expected.cast(table.schema)), f"{name}, window of {size}: wrong for {condition}"


def _check_paths(lazy: ExperimentPot, eager: ExperimentPot, now: int) -> None:
    """Check that the lazy pot has no cells, and that the eager pot owes none."""
    for pot, published in ((lazy, False), (eager, True)):
        for handles in pot.handles.values():
            registered = pot.engine.invoker.view.query(handles[0])
            segments = pot.engine.invoker.view.stream(registered.stream_ids[0]).segments
            assert segments
            assert all(segment.publishes(registered.stream) is published for segment in segments), f"at {now}"


def in_turns(
    methods: Methods,
    windows: Sequence[int],
    queries: int,
    now: int,
    rounds: int,
    of_rounds: Callable[[Sequence[float]], float] = min,
) -> Curves:
    """Milliseconds of an invocation, for each query by default the best of the rounds; methods take turns."""
    durations = {(name, size): np.empty((queries, rounds)) for size in windows for name in methods}
    for number in range(rounds):
        for (name, size), times in durations.items():
            answer = methods[name]
            for query in range(queries):
                began = time.perf_counter()
                answer(size, query, now)
                times[query, number] = time.perf_counter() - began
    milliseconds = {
        key: 1000 * float(np.mean([of_rounds(of_query.tolist()) for of_query in times]))
        for key, times in durations.items()
    }
    return {name: {size: milliseconds[name, size] for size in windows} for name in methods}


def mean_curves(moments: Sequence[Curves]) -> Curves:
    """The mean of measurements at several moments."""
    return {
        name: {size: float(np.mean([curves[name][size] for curves in moments])) for size in curve}
        for name, curve in moments[0].items()
    }
