"""Response times of inequality joins in NoMat, PSoup-P and PSoup-C (§5.2.2, Fig. 8).

A query has one factor between two streams, `r.a < s.b + c`, and a window of the same size for both. All variants are in
one pot:

* NoMat's queries are lazy: the join is evaluated at the invocation.
* PSoup-P's queries are eager: the joined tuples are in join runs, and the windows are applied at the invocation.
* PSoup-C stores where the joined tuples of the current window are, and copies them at the invocation.

Results are stored when tuples arrive, which is not timed. Tuples arrive in batches; after each, all answers must equal
numpy's, and then all queries are invoked in turns.

The engine does not keep joins whose tuples have more than eight partners on average, which these have. For PSoup-P and
PSoup-C, that limit is raised.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple, cast
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_response import COMPLETE, NOMAT, PARTIAL, Curves, InvocationPlan, in_turns, mean_curves
from benchmarks.psoup_workload import INEQUALITIES, SIGNS, constant
from benchmarks.workload import SCHEMA, START, tuples
from tureen.pipeline import join_keeping
from tureen.pot.registered import Registered
from tureen.results.answer import Answer, Bounds
from tureen.results.joins.join_answers import JoinAnswer
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.joined import JoinedMatches
from tureen.results.rows.ready import Ready
from tureen.results.snapshot.stream_state import Snapshot
from tureen.testing.manual_engine import ManualEngine

STREAMS = ("r", "s")
FAN_OUT = 1 << 30
"""The average number of partners up to which the pot of this experiment keeps a join."""

AnswerOf = Callable[[int, int, int], Answer]
"""The answer for a size of the window, the number of a query, and NOW."""


class JoinCondition(NamedTuple):
    """A factor between two streams: `r.a sign s.b + offset`."""

    sign: str
    offset: int

    def __str__(self) -> str:
        """The factor as SQL."""
        return f"r.a {self.sign} s.b {'-' if self.offset < 0 else '+'} {abs(self.offset)}"

    def sql(self, size: int) -> str:
        """The query over windows of `size` tuples."""
        return f"SELECT * FROM r JOIN s ON {self} BEGIN NOW - {(size - 1) / 1e6:.6f} END NOW"


def join_conditions(count: int, seed: int = 7) -> list[JoinCondition]:
    """Inequalities with constants of the paper's distribution, added or subtracted."""
    chance = random.Random(seed)
    return [JoinCondition(chance.choice(INEQUALITIES), chance.choice((1, -1)) * constant(chance)) for _ in range(count)]


@dataclass(frozen=True, eq=False)
class JoinWorkload:
    """Two streams with a tuple each microsecond, and the conditions of the queries over them."""

    tables: Mapping[str, pa.Table]
    conditions: Sequence[JoinCondition]

    @classmethod
    def uniform(cls, rows: int, conditions: Sequence[JoinCondition]) -> JoinWorkload:
        """Values uniform in [0, 255]."""
        left, right = tuples(rows, 0), tuples(rows, 1)
        right = right.set_column(right.column_names.index("ts"), "ts", left.column("ts"))
        return cls(dict(zip(STREAMS, (left, right), strict=True)), conditions)

    def expected(self, condition: JoinCondition, begin: int, end: int) -> pa.Table:
        """The joined tuples of a window, by numpy alone, in order of the earlier tuple."""
        left, right = (self.tables[name].slice(begin, end - begin) for name in STREAMS)
        values: tuple[npt.NDArray[np.int64], ...] = (
            left.column("a").to_numpy().astype(np.int64),
            right.column("b").to_numpy().astype(np.int64) + condition.offset,
        )
        first, second = np.nonzero(SIGNS[condition.sign](values[0][:, None], values[1][None, :]))
        order = np.lexsort((second, first, np.minimum(first, second)))
        sides = left.take(pa.array(first[order])), right.take(pa.array(second[order]))
        columns = [column.combine_chunks() for side in sides for column in side.columns]
        return pa.Table.from_arrays(columns, names=[str(number) for number in range(len(columns))])


class JoinPot:
    """A pot with every query of a workload for every size of window, lazy and eager."""

    def __init__(self, root: Path, workload: JoinWorkload, windows: Sequence[int]) -> None:
        """Create the pot, without tuples."""
        self.engine = ManualEngine(root)
        for name in STREAMS:
            self.engine.create_stream(name, SCHEMA, time="ts")
        self.handles = {
            variant: {
                size: [
                    self.engine.register(condition.sql(size), materialize=variant == PARTIAL)
                    for condition in workload.conditions
                ]
                for size in windows
            }
            for variant in (NOMAT, PARTIAL)
        }
        self.engine.compile()

    def take(self, parts: Mapping[str, pa.Table]) -> None:
        """Push the next tuples of both streams, and join them."""
        for name, part in parts.items():
            self.engine.push(name, part)
        with patch.object(join_keeping, "MAX_FAN_OUT", FAN_OUT):
            self.engine.keep_joins()

    def answer(self, variant: str) -> AnswerOf:
        """The engine's answers of a variant."""
        handles = self.handles[variant]
        return lambda size, query, now: self.engine.invoke(handles[size][query], now)

    def find(self, variant: str) -> Callable[[int, int, int], JoinedMatches]:
        """The rows of the engine's answers, in order, without copying the tuples."""

        def rows(size: int, query: int, now: int) -> JoinedMatches:
            _, matches = self.matches(self.handles[variant][size][query], now)
            assert matches.in_order is not None
            return matches

        return rows

    def matches(self, handle: str, now: int) -> tuple[JoinAnswer, JoinedMatches]:
        """The rows of an answer, and how they were computed, by the engine's own steps."""

        def find(
            registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin
        ) -> tuple[JoinAnswer, JoinedMatches]:
            answer = self.engine.invoker.answers.join_answer(registered, snapshot, now)
            return answer, answer._matches(cast(ReadyJoin, ready))

        return self.engine.invoker.with_prepared(handle, find)

    def check_paths(self, now: int) -> None:
        """Check that lazy queries are evaluated, and that the joins of eager ones are kept and owe nothing."""
        for variant, by_size in self.handles.items():
            for handles in by_size.values():
                for handle in handles:
                    answer, _ = self.matches(handle, now)
                    assert (answer.kept is None) is (variant == NOMAT), f"{variant}: the join is not kept"
                    if answer.kept is not None:
                        arrived = self.engine.invoker.next_ids(range(1, len(STREAMS) + 1))
                        assert answer.kept.join.progress == arrived, "the join owes tuples"


class CompleteJoins:
    """PSoup-C beside a pot: it stores the joined tuples of the pot's queries in their windows."""

    def __init__(self, pot: JoinPot) -> None:
        """Start without results."""
        self._pot = pot
        self._stored: dict[str, JoinedMatches] = {}

    def take(self, now: int) -> None:
        """Store the joined tuples of all windows at `now`."""
        for handles in self._pot.handles[PARTIAL].values():
            for handle in handles:
                _, matches = self._pot.matches(handle, now)
                self._stored[handle] = JoinedMatches(matches.inputs, matches.in_order, matches.times)

    def invoke(self, size: int, query: int, now: int) -> Answer:
        """The answer as `Invoker` returns it, except for where the joined tuples come from."""
        handle = self._pot.handles[PARTIAL][size][query]
        matches = self._stored[handle]

        def copy(_: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> Answer:
            table = ready.finish(matches.table(ready.fields))
            return Answer(table, Bounds.of(now - size + 1, now), snapshot.position, complete=True)

        return self._pot.engine.invoker.with_prepared(handle, copy)


def join_response_times(
    root: Path, workload: JoinWorkload, windows: Sequence[int], plan: InvocationPlan
) -> tuple[Curves, Curves]:
    """Milliseconds of an invocation, and of finding the joined tuples alone: for each query the median of the rounds.

    Of these, the mean over all queries and batches.
    """
    pot = JoinPot(root, workload, windows)
    complete = CompleteJoins(pot)
    answering = {NOMAT: pot.answer(NOMAT), PARTIAL: pot.answer(PARTIAL), COMPLETE: complete.invoke}
    finding = {variant: pot.find(variant) for variant in (NOMAT, PARTIAL)}
    whole: list[Curves] = []
    rows: list[Curves] = []
    arrived = 0
    for size in (max(windows), *[plan.batch] * plan.batches):
        pot.take({name: table.slice(arrived, size) for name, table in workload.tables.items()})
        arrived += size
        if arrived == max(windows):
            continue
        now = START + arrived - 1
        complete.take(now)
        verify_joins(workload, windows, answering, arrived)
        pot.check_paths(now)
        queries = len(workload.conditions)
        whole.append(in_turns(answering, windows, queries, now, plan.rounds, median))
        rows.append(in_turns(finding, windows, queries, now, plan.rounds, median))
    pot.engine.close()
    return mean_curves(whole), mean_curves(rows)


def verify_joins(workload: JoinWorkload, windows: Sequence[int], methods: Mapping[str, AnswerOf], arrived: int) -> None:
    """Check every answer of every method against numpy's, row by row."""
    for number, condition in enumerate(workload.conditions):
        for size in windows:
            expected = workload.expected(condition, arrived - size, arrived)
            for name, answer in methods.items():
                table = answer(size, number, START + arrived - 1).table
                table = table.rename_columns(expected.column_names).cast(expected.schema)
                assert table.equals(expected), f"{name}, window of {size}: wrong for {condition}"
