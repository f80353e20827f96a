"""Many tuples probe a stream together or one by one: composite tuples and hybrid structs (§5.4, Fig. 11).

The queries are `(r.a op1 c1) AND (r.a op2 s.b) AND (s.b op3 c2)`. As in the paper, only the last step is timed: the
tuples of `r` that satisfy the first factor are known, and each is a *hybrid struct*, `value op2 s.b AND s.b op3 c2`,
that probes `s`. The last factor is the same for all of them.

* *Composite*: the shared factor selects tuples of `s` once, and one evaluation joins all hybrid structs with these.
* *Separate*: the same for each hybrid struct alone.
* *Separate, by index*: each hybrid struct is a selection by the index of `s`, which is the paper's nested-loops index
  join. Its two factors compare one column, and so the engine probes with one range.

Pairs of all of them must equal numpy's before anything is timed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.psoup_response import Curves
from benchmarks.psoup_workload import INEQUALITIES, SIGNS, constant
from benchmarks.workload import SCHEMA, tuples
from tureen.join import Field, InnerJoin, JoinCompare
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.language import bind_query
from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.query import NamedRelation
from tureen.results.joins.join_inputs import StreamInput, TableInput
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.rows.gather import StreamMatches
from tureen.results.snapshot.segment import Segment
from tureen.schema import Schema
from tureen.testing.manual_engine import ManualEngine

COMPOSITE, SEPARATE, BY_INDEX = "composite", "separate", "separate, by index"

WORKLOADS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "Eq/Ineq": (("=",), INEQUALITIES),
    "Ineq/Eq": (INEQUALITIES, ("=",)),
    "Ineq/Ineq": (INEQUALITIES, INEQUALITIES),
}
"""The signs of the shared factor (the paper's RELOP3), and of the factor between the streams (RELOP2)."""

Pairs = npt.NDArray[np.int64]
"""A column for each pair: the number of a probing tuple, and the number of a tuple of `s`."""


@dataclass(frozen=True)
class ProbeQuery:
    """The factors of a query that remain when tuples of `r` probe `s`."""

    shared_sign: str
    constant: int
    sign: str

    def where(self, value: int | None = None) -> str:
        """The shared factor as SQL; with the value of a probing tuple, its hybrid struct."""
        shared = f"b {self.shared_sign} {self.constant}"
        return shared if value is None else f"{value} {self.sign} b AND {shared}"

    @property
    def tree(self) -> InnerJoin:
        """The join of probing tuples with the tuples of `s` that satisfy the shared factor."""
        return InnerJoin((0, 1), (JoinCompare(Field(0, "a"), self.sign, Field(1, "b")),))

    def truth(self, values: npt.NDArray[np.int64], stream: npt.NDArray[np.int64]) -> Pairs:
        """The pairs by numpy alone."""
        between = SIGNS[self.sign](values[:, None], stream[None, :])
        return np.stack(np.nonzero(between & SIGNS[self.shared_sign](stream, self.constant)[None, :]))


def probe_queries(workload: str, count: int, seed: int = 7) -> list[ProbeQuery]:
    """Queries of a workload, with constants of the paper's distribution."""
    chance = random.Random(seed)
    shared, between = WORKLOADS[workload]
    return [ProbeQuery(chance.choice(shared), constant(chance), chance.choice(between)) for _ in range(count)]


class ProbedStream:
    """The stream `s` in one run, with the engine's index."""

    def __init__(self, root: Path, rows: int) -> None:
        """Push that many tuples."""
        self._engine = ManualEngine(root)
        self._engine.create_stream("s", SCHEMA, time="ts")
        table = tuples(rows, 1)
        self._engine.push("s", table)
        self.values: npt.NDArray[np.int64] = table.column("b").to_numpy().astype(np.int64)
        self._schema = Schema.parse(SCHEMA, "ts")
        (self._segment,) = self._segments()
        self._indexes = KeyIndexes()

    def composite(self, query: ProbeQuery, values: npt.NDArray[np.int64]) -> Callable[[], Pairs]:
        """A function that probes with all values at once."""
        return self._evaluation(query, [values])

    def separate(self, query: ProbeQuery, values: npt.NDArray[np.int64]) -> Callable[[], Pairs]:
        """A function that probes with each value alone."""
        return self._evaluation(query, np.split(values, len(values)))

    def by_index(self, query: ProbeQuery, values: npt.NDArray[np.int64]) -> Callable[[], Pairs]:
        """A function that probes the index with a selection for each value."""
        prepared = {value: self._selector(query.where(value)) for value in set(values.tolist())}
        selectors = [prepared[value] for value in values.tolist()]

        def probe() -> Pairs:
            positions = [self._positions(selector) for selector in selectors]
            numbers = np.repeat(np.arange(len(positions)), [len(part) for part in positions])
            return np.stack([numbers, np.concatenate(positions)])

        return probe

    def close(self) -> None:
        """Close the pot."""
        self._engine.close()

    def _evaluation(self, query: ProbeQuery, parts: Sequence[npt.NDArray[np.int64]]) -> Callable[[], Pairs]:
        """A function that selects tuples by the shared factor and joins them, once for each part."""
        selector, tree = self._selector(query.where()), query.tree
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        probing = [TableInput(pa.table({"a": part})) for part in parts]

        def probe() -> Pairs:
            pairs = []
            for start, entry in zip(starts, probing, strict=True):
                hits = self._segment.hits(RegisteredInput(), selector, 0, self._segment.rows)
                stream = StreamInput(StreamMatches(self._schema, [hits]), self._indexes)
                joined = JoinEvaluation([entry, stream], 0).rows(tree).rows
                pairs.append(np.stack([joined[0] + start, hits.positions()[joined[1]]]))
            return np.concatenate(pairs, axis=1)

        return probe

    def _positions(self, selector: Selector) -> npt.NDArray[np.int64]:
        return self._segment.hits(RegisteredInput(), selector, 0, self._segment.rows).positions()

    def _selector(self, where: str) -> Selector:
        bound = bind_query(f"SELECT * FROM s WHERE {where}", lambda _: NamedRelation("s", self._schema))
        return Selector(bound.stream.clause, self._schema)

    def _segments(self) -> Sequence[Segment]:
        (state,) = self._engine.invoker.snapshot().streams.values()
        return state.segments


@dataclass(frozen=True)
class ProbePlan:
    """The sizes of the experiment."""

    stream: int
    """The number of tuples that are probed."""
    probes: Sequence[int]
    """The numbers of tuples that probe."""
    queries: int
    rounds: int


def probe_times(root: Path, workload: str, plan: ProbePlan) -> Curves:
    """Milliseconds of all probes of a query, by method and number of probing tuples.

    For each query the median of the rounds, and of these the mean.
    """
    stream = ProbedStream(root, plan.stream)
    methods = {COMPOSITE: stream.composite, SEPARATE: stream.separate, BY_INDEX: stream.by_index}
    curves: Curves = {name: {} for name in methods}
    for count in plan.probes:
        values = tuples(count, 0).column("a").to_numpy().astype(np.int64)
        milliseconds: dict[str, list[float]] = {name: [] for name in methods}
        for query in probe_queries(workload, plan.queries):
            probes = {name: prepare(query, values) for name, prepare in methods.items()}
            verify_probes(query, query.truth(values, stream.values), probes)
            durations = _durations(probes, plan.rounds)
            for name, times in durations.items():
                milliseconds[name].append(1000 * median(times))
        for name, medians in milliseconds.items():
            curves[name][count] = float(np.mean(medians))
    stream.close()
    return curves


def verify_probes(query: ProbeQuery, expected: Pairs, probes: Mapping[str, Callable[[], Pairs]]) -> None:
    """Check the pairs of every method, in any order."""
    for name, probe in probes.items():
        pairs = probe()
        pairs = pairs[:, np.lexsort(pairs[::-1])]
        assert np.array_equal(pairs, expected), f"{name}: wrong pairs for {query.where()} and {query.sign}"


def _durations(probes: Mapping[str, Callable[[], Pairs]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each method in each round; methods take turns."""
    durations: dict[str, list[float]] = {name: [] for name in probes}
    for _ in range(rounds):
        for name, probe in probes.items():
            began = time.perf_counter()
            probe()
            durations[name].append(time.perf_counter() - began)
    return durations
