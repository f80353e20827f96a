"""Response times of NoMat, PSoup-P and PSoup-C (§5.2.2, §5.2.3, §5.5.1).

Every query is registered once for each size of window in two pots, lazy in one (NoMat) and eager in the other
(PSoup-P), and invoked as anybody would. PSoup-C answers by the same steps from the second pot's runs, but for the one
in which the rows are found: it has them. Tuples come in batches; after each, all answers must be numpy's, and then all
queries are invoked in turns. NOW is the last tuple's time. Finding the rows alone leaves out most of what all three do
alike: asking the catalog whether something changed, and copying the tuples into an Arrow table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_kept import CellOf, Kept
from benchmarks.psoup_workload import Workload
from tureen.language import bind_query
from tureen.matching import Selector
from tureen.position import Mark, Position
from tureen.queries import compile_clauses
from tureen.results.answer import Answer, Bounds
from tureen.results.gather import StreamMatches, fields_of
from tureen.results.ranges import ranges_of
from tureen.results.segment import Hits
from tureen.results.view import StreamState
from tureen.stems.run import OpenRun, open_run
from tureen.testing.hand_turned import HandTurned

NOMAT, PARTIAL, COMPLETE = "NoMat", "PSoup-P", "PSoup-C"
NAMES = (NOMAT, PARTIAL, COMPLETE)

Curves = dict[str, dict[int, float]]
"""Milliseconds, or tuples per second, by variant and by size of the window or number of queries."""


@dataclass(frozen=True)
class Pace:
    """How a stream's tuples come: what fills the largest window, then some batches, with everything invoked after each.

    Everything is invoked in so many rounds, of which the best counts for each query.
    """

    batch: int
    batches: int
    rounds: int

    def rows(self, windows: Sequence[int]) -> int:
        """How many tuples come in all."""
        return max(windows) + self.batch * self.batches


class Pot:
    """A pot turned by hand, with every query of a workload for every size of window."""

    def __init__(self, root: Path, workload: Workload, windows: Sequence[int], *, materialize: bool) -> None:
        """Make it, without any tuple."""
        self.turned = HandTurned(root)
        self.turned.create_stream("s", workload.columns, time=workload.time)
        texts = {size: [workload.sql(one, size) for one in workload.conditions] for size in windows}
        self.handles = {
            size: [self.turned.register(sql, materialize=materialize) for sql in some] for size, some in texts.items()
        }
        self.turned.compile()
        self._windows = {
            size: bind_query(some[0], lambda _: ("s", workload.schema)).stream.window for size, some in texts.items()
        }
        self._selectors = [Selector(clause, workload.schema) for clause in workload.clauses()]

    def invoke(self, size: int, query: int, now: int) -> Answer:
        """The engine's answer."""
        return self.turned.invoke(self.handles[size][query], now)

    def find(self, size: int, query: int, now: int) -> list[Hits]:
        """The rows of the engine's answer, by the engine's own steps."""
        view = self.turned.invoker.view
        registered = view.query(self.handles[size][query])
        state = view.stream(registered.stream_ids[0])
        ranges = ranges_of(state.segments, self._windows[size].span(now), None)
        return [
            segment.hits(registered.stream, self._selectors[query], first, last)
            for segment, (first, last) in zip(state.segments, ranges, strict=True)
            if last > first
        ]


class Complete:
    """PSoup-C beside a pot: it keeps what the pot's queries find in their windows."""

    def __init__(self, pot: Pot, workload: Workload) -> None:
        """Start with nothing."""
        self._pot, self._workload = pot, workload
        clauses = workload.clauses()
        run = compile_clauses(range(len(clauses)), clauses, workload.schema)
        self._kept: dict[int, tuple[Kept, CellOf]] = {}
        for size in pot.handles:
            kept = Kept(len(clauses), size + workload.per_step, workload.span(size))
            self._kept[size] = kept, kept.shared(run, workload.time)
        self._runs: list[OpenRun] = []
        self._starts: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def take(self) -> None:
        """Keep what the runs that came since give."""
        self._pot.turned.invoker.view.refresh()
        for run in self._state().runs[len(self._runs) :]:
            opened = open_run(self._pot.turned.catalog.root / run.path, self._workload.schema)
            self._runs.append(opened)
            for block in opened.blocks:
                for _, keep in self._kept.values():
                    keep(block)
        sizes = [block.rows for run in self._runs for block in run.blocks]
        self._starts = np.cumsum([0, *sizes[:-1]])

    def invoke(self, size: int, query: int, now: int) -> Answer:
        """The answer, as `Invoker` would make it, but for where the rows come from."""
        workload, view = self._workload, self._pot.turned.invoker.view
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

    def find(self, size: int, query: int, now: int) -> list[Hits]:  # noqa: ARG002 - what is kept is of the last NOW
        """The rows that are kept."""
        rows, starts = self._kept[size][0].located(query, self._starts)
        hits, block = [], 0
        for segment, run in zip(self._state().segments, self._runs, strict=True):
            after = block + len(run.blocks)
            low, high = int(starts[block]), int(starts[after])
            if high > low:
                hits.append(Hits(segment, run, rows[low:high], starts[block : after + 1] - low))
            block = after
        return hits

    def _state(self) -> StreamState:
        view = self._pot.turned.invoker.view
        first = next(iter(self._pot.handles.values()))[0]
        return view.stream(view.query(first).stream_ids[0])


Ways = Mapping[str, Callable[[int, int, int], object]]
"""For each variant, what answers (size of the window, number of the query, NOW)."""


def response_times(root: Path, workload: Workload, windows: Sequence[int], pace: Pace) -> tuple[Curves, Curves]:
    """Milliseconds of an invocation, and of finding the rows alone: the mean over all queries and moments."""
    root.mkdir(parents=True)
    lazy = Pot(root / "lazy", workload, windows, materialize=False)
    eager = Pot(root / "eager", workload, windows, materialize=True)
    complete = Complete(eager, workload)
    answering: dict[str, Callable[[int, int, int], Answer]]
    answering = {NOMAT: lazy.invoke, PARTIAL: eager.invoke, COMPLETE: complete.invoke}
    finding = {NOMAT: lazy.find, PARTIAL: eager.find, COMPLETE: complete.find}
    whole: list[Curves] = []
    rows: list[Curves] = []
    came = 0
    for size in (max(windows), *[pace.batch] * pace.batches):
        part = workload.table.slice(came, size)
        came += size
        for pot in (lazy, eager):
            pot.turned.push("s", part)
        complete.take()
        if came == max(windows):
            continue
        now = int(workload.times[came - 1])
        verify(workload, windows, answering, came)
        _check_paths(lazy, eager, now)
        whole.append(_in_turns(answering, windows, len(workload.conditions), now, pace.rounds))
        rows.append(_in_turns(finding, windows, len(workload.conditions), now, pace.rounds))
    for pot in (lazy, eager):
        pot.turned.close()
    return _mean(whole), _mean(rows)


def verify(
    workload: Workload,
    windows: Sequence[int],
    ways: Mapping[str, Callable[[int, int, int], Answer]],
    came: int,
) -> None:
    """Every answer of every way is numpy's, row by row."""
    now, begins = int(workload.times[came - 1]), {size: workload.begin(size, came) for size in windows}
    for number, condition in enumerate(workload.conditions):
        true = workload.truth(condition, 0, came)
        for size, begin in begins.items():
            right = workload.table.take(pa.array(true[np.searchsorted(true, begin) :]))
            for name, answer in ways.items():
                given = answer(size, number, now).table
                assert given.equals(right.cast(given.schema)), f"{name}, window of {size}: wrong for {condition}"


def _check_paths(lazy: Pot, eager: Pot, now: int) -> None:
    """The lazy pot evaluates, and the eager one owes nothing."""
    for pot, published in ((lazy, False), (eager, True)):
        for handles in pot.handles.values():
            registered = pot.turned.invoker.view.query(handles[0])
            segments = pot.turned.invoker.view.stream(registered.stream_ids[0]).segments
            assert segments
            assert all(segment.publishes(registered.stream) is published for segment in segments), f"at {now}"


def _in_turns(ways: Ways, windows: Sequence[int], queries: int, now: int, rounds: int) -> Curves:
    """Milliseconds of an invocation, of each query the best of the rounds, in which all ways take turns."""
    best = {(name, size): np.full(queries, np.inf) for size in windows for name in ways}
    for _ in range(rounds):
        for (name, size), times in best.items():
            answer = ways[name]
            for query in range(queries):
                began = time.perf_counter()
                answer(size, query, now)
                times[query] = min(times[query], time.perf_counter() - began)
    return {name: {size: 1000 * float(best[name, size].mean()) for size in windows} for name in ways}


def _mean(moments: Sequence[Curves]) -> Curves:
    return {
        name: {size: float(np.mean([one[name][size] for one in moments])) for size in curve}
        for name, curve in moments[0].items()
    }
