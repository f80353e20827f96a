"""Followed joins: what 1,000 queries over one join cost, and how fast the order adapts.

No Spark runs: rows are pending when followers read them. Results are compared with those that a process computes alone
before anything is timed. The speed of derived joins is measured beside other engines (`benchmarks/join_peers.py`).
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.spark_join_job import STREAMS
from tureen.position import Position
from tureen.results.following.followers import Follower
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine

START = 1_700_000_000_000_000
PUSH_ROWS = 100
VALUES = 10_000
"""The number of different values of the column that queries compare."""
WANTED = VALUES // 10
"""Queries want a tenth of the joined tuples, however many there are."""
RATE = 10_000
"""Rows per second of the stream whose partners change."""


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure both."""
    pushes = 200 if scale.rounds > 1 else 10
    costs = {count: _cost(root, count, scale.join_rows // 8, pushes) for count in (1, scale.followed_joins)}
    for count, seconds in costs.items():
        report.add(f"a push of {PUSH_ROWS} rows, {count:,} followed queries over one join", 1000 * seconds, "ms")
    report.reach("followed joins", costs[scale.followed_joins] / costs[1])
    best, adapted = _work(root, "fixed", exchange=False), _work(root, "tickets", exchange=True)
    report.add("visits per tuple of the best order", best, "")
    report.add("visits per tuple, 2 s after the selectivities were exchanged", adapted, "")
    report.reach("adaptation", adapted / best)


@contextmanager
def _engine(root: Path) -> Iterator[ManualEngine]:
    with TemporaryDirectory(dir=root) as folder:
        engine = ManualEngine(Path(folder))
        yield engine
        engine.close()


class _Reader:
    """A follower of a query."""

    def __init__(self, engine: ManualEngine, handle: str) -> None:
        self.engine, self.handle = engine, handle
        self.position = self.start = Position.parse(engine.invoker.new_rows(handle, None).position())
        self.follower: Follower | None = engine.invoker.follow(handle)
        assert self.follower is not None
        self.rows: Counter[str] = Counter()

    def read(self, *, keep: bool = False) -> None:
        """Read what is new."""
        new = self.engine.invoker.new_rows(self.handle, self.position, self.follower)
        self.position = Position.parse(new.position())
        if keep:
            self.rows.update(map(str, new.rows.to_pylist()))

    def verify(self) -> None:
        """Compare with what another process computes alone."""
        alone = Invoker(self.engine.catalog).new_rows(self.handle, self.start).rows.to_pylist()
        assert self.rows == Counter(map(str, alone)), "a follower has read other rows than it computes alone"


def _cost(root: Path, count: int, stored: int, pushes: int) -> float:
    """The median seconds of a push: joining the new tuples, and all reads of followers that have rows."""
    random = np.random.default_rng(1)
    with _engine(root) as engine:
        for name in STREAMS:
            engine.create_stream(name, "k INT, x INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.push("b", _rows(random.permutation(stored), random.integers(0, VALUES, stored), 0))
        share = WANTED // count
        texts = [f"a.x >= {number * share} AND a.x < {(number + 1) * share}" for number in range(count)]
        join = "SELECT a.k, a.x, b.x AS y FROM a JOIN b ON a.k = b.k WHERE "
        readers = [_Reader(engine, engine.register(join + text, materialize=False)) for text in texts]
        by_query = {reader.follower.clause: reader for reader in readers if reader.follower is not None}
        followers = engine.invoker.followers
        consumer = followers.consumer()
        followers.advance(consumer)
        seconds = []
        verified = max(5, pushes // 10)
        for number in range(pushes + verified):
            keys, values = random.integers(0, stored, PUSH_ROWS), random.integers(0, VALUES, PUSH_ROWS)
            engine.append("a", _rows(keys, values, number + 1))
            began = time.perf_counter()
            matched = followers.advance(consumer)
            for clause in by_query if matched is None else matched:
                by_query[clause].read(keep=number < verified)  # type: ignore[index]
            seconds.append(time.perf_counter() - began)
            if number + 1 == verified:
                for reader in readers[:: max(1, count // 50)]:
                    reader.read(keep=True)
                    reader.verify()
        return statistics.median(seconds[verified:])


def _work(root: Path, routing: str, *, exchange: bool) -> float:
    """Visits per tuple in the last of two seconds; with `exchange`, after the selectivities of two joins changed."""
    random = np.random.default_rng(2)
    with _engine(root) as engine:
        engine.invoker.followers.joins.routing = routing
        engine.create_stream("a", "k INT, j INT, ts TIMESTAMP", time="ts", clock="stream")
        for name, column in (("b", "k"), ("c", "j")):
            engine.create_stream(name, f"{column} INT, ts TIMESTAMP", time="ts", clock="stream")
            times = pa.array(START + np.arange(1000)).cast(pa.timestamp("us", "UTC"))
            engine.push(name, pa.table({column: pa.array(np.arange(1000), pa.int32()), "ts": times}))
        sql = "SELECT a.k, a.j FROM a JOIN b ON a.k = b.k JOIN c ON a.j = c.j"
        reader = _Reader(engine, engine.register(sql, materialize=False))
        (operator,) = engine.invoker.followers.joins.operators()
        totals = []
        second = RATE // PUSH_ROWS
        for number in range(4 * second):
            is_exchanged = exchange and number >= 2 * second
            selective, other = random.integers(0, 10_000, PUSH_ROWS), random.integers(0, 1_000, PUSH_ROWS)
            keys = (other, selective) if is_exchanged else (selective, other)
            times = pa.array(np.full(PUSH_ROWS, START + number)).cast(pa.timestamp("us", "UTC"))
            columns = dict(zip("kj", (pa.array(each, pa.int32()) for each in keys), strict=True))
            engine.append("a", pa.table({**columns, "ts": times}))
            reader.read(keep=True)
            totals.append(operator.join.router.totals())
        reader.verify()
        last, before = totals[-1], totals[-1 - second // 2]
        return (last["visits"] - before["visits"]) / (last["tuples"] - before["tuples"])


def _rows(keys: np.ndarray, values: np.ndarray, number: int) -> pa.Table:
    times = pa.array(np.full(len(keys), START + number)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": pa.array(keys, pa.int32()), "x": pa.array(values, pa.int32()), "ts": times})
