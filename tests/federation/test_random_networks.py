"""Random registrations, pushes, restarts and absences in a network: every answer is that of a single server.

The servers narrow their flows at every occasion.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.federation.nodes import NARROWING, Nodes
from tureen.position import BEGINNING, Position
from tureen.testing.manual_engine import ManualClock, ManualEngine

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NETWORKS = [
    [("A", "B"), ("B", "C")],
    [("A", "B"), ("B", "C"), ("B", "D")],
    [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")],
    [("A", "B"), ("A", "C"), ("B", "C")],
]
"""The stream lives at A. A network may have a circle."""

SCHEMA = "k INT, x DOUBLE, s STRING, b BIGINT, d DECIMAL(9,2), ts TIMESTAMP"


class TwinTest:
    """A network and a single server that gets the same."""

    settings = NARROWING
    most_rows = 9

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock(NOW)
        links = self.random.choice(NETWORKS)
        clock = self.random.choice(["wall", "stream"])
        self.retain = self.random.choice([None, None, "1 hour"])
        self.nodes = Nodes(root, self.clock, links, self.settings)
        self.twin = ManualEngine(root / "twin", self.clock)
        for engine in (self.nodes["A"].engine, self.twin):
            engine.create_stream("s", SCHEMA, "ts", clock=clock, retain=self.retain)
        for left, right in links:
            self.nodes.share("s", left, right)
            if "A" not in (left, right):
                self.nodes.share("s", right, left)
        self.queries: list[tuple[str, str, str]] = []
        self.followed: dict[str, tuple[str, list[Any]]] = {}
        """By handle: the position and the rows up to which changes were read."""

    def close(self) -> None:
        """Close all pots."""
        self.nodes.close()
        self.twin.close()

    def row(self) -> dict[str, Any]:
        """A random row."""
        pick = self.random
        return {
            "k": pick.choice([None, *range(8)]),
            "x": pick.choice([None, float("nan"), -1.5, 0.0, 2.5, 7.0]),
            "s": pick.choice([None, "", "ab", "b"]),
            # Sums of the large ones are not exact as doubles.
            "b": pick.choice([None, 1, -7, (1 << 55) + 1, -(1 << 55) - 3]),
            "d": pick.choice([None, Decimal("-0.01"), Decimal("12.34"), Decimal("9999999.99")]),
            "ts": NOW - timedelta(minutes=pick.randrange(90)),
        }

    def condition(self) -> str:
        """A random condition; `k % 2 = 0` may fail, and is evaluated where the query is."""
        pick, low = self.random, self.random.randrange(6)
        factors = [
            f"k BETWEEN {low} AND {low + pick.randrange(4)}",
            f"k IN ({low}, {low + 2})",
            f"x >= {pick.choice([-1.5, 0.0, 2.5])}",
            "s LIKE 'a%'",
            "s IS NULL OR k = 3",
            "k % 2 = 0",
        ]
        return " AND ".join(f"({factor})" for factor in pick.sample(factors, pick.randrange(3))) or "TRUE"

    def text(self) -> str:
        """A random query."""
        return self.random.choice(
            [
                "SELECT k, x FROM s WHERE {}",
                "SELECT * FROM s [RANGE 1 HOUR] WHERE {}",
                "SELECT s, count(*) AS n FROM s [RANGE 30 MINUTES] WHERE {} GROUP BY s",
                "SELECT k FROM s [ROWS 5] WHERE {}",
                "SELECT window_start, sum(k) AS t FROM s [TUMBLE 10 MINUTES] WHERE {}",
                "SELECT window_start, s, count(*) AS n, avg(k) AS a FROM s [RANGE 20 MINUTES SLIDE 10 MINUTES] "
                "WHERE {} GROUP BY s",
                "SELECT window_start, k, min(x) AS low, max(s) AS high, sum(b) AS sb, avg(b) AS ab, avg(d) AS ad "
                "FROM s [TUMBLE 5 MINUTES] WHERE {} GROUP BY k, s HAVING count(*) > 1",
                "SELECT k, sum(d) AS t, count(x) AS n FROM s [TUMBLE 7 MINUTES START AT '2026-01-01T00:01:00Z'] "
                "WHERE {} GROUP BY k",
                "SELECT a.k FROM s AS a JOIN s AS b ON a.k = b.k WHERE b.x > 0",
            ]
        ).format(self.condition())

    def register(self) -> None:
        """Register a query at a server."""
        name, text = self.random.choice(self.nodes.running), self.text()
        handle = self.nodes[name].register(text)
        self.queries.append((name, handle, self.twin.register(text, materialize=False)))
        if " [" not in text and " JOIN " not in text and self.retain is None:
            self.followed[handle] = (BEGINNING, [])

    def unregister(self) -> None:
        """Unregister a query of a server that runs."""
        running = [query for query in self.queries if query[0] in self.nodes.running]
        if running:
            query = self.random.choice(running)
            self.queries.remove(query)
            self.nodes[query[0]].unregister(query[1])
            self.twin.unregister(query[2])
            self.followed.pop(query[1], None)

    def push(self) -> None:
        """Push rows, and perhaps move them into runs."""
        if "A" in self.nodes.running:
            rows = [self.row() for _ in range(self.random.randrange(1, self.most_rows))]
            for engine in (self.nodes["A"].engine, self.twin):
                engine.append("s", rows)
                if self.random.random() < 0.3:
                    engine.take("s")

    def stop(self) -> None:
        """Stop a server."""
        if len(self.nodes.running) > 2:
            self.nodes[self.random.choice(self.nodes.running)].stop()

    def start(self) -> None:
        """Start all servers that are stopped."""
        for node in self.nodes.all.values():
            if node.is_away:
                node.start()

    def tend(self) -> None:
        """Receive everything, and drop what is not needed."""
        self.nodes.tend()

    def receive(self) -> None:
        """Receive everything."""
        self.nodes.receive()

    def check(self) -> None:
        """Compare all answers, and what followers have seen."""
        for name, handle, twin_handle in self.queries:
            answer, expected = self.nodes[name].invoke(handle), self.twin.invoke(twin_handle)
            assert repr(answer.table.to_pylist()) == repr(expected.table.to_pylist())
            assert (answer.window, answer.complete, answer.note) == (expected.window, expected.complete, None)
        for name, handle, twin_handle in self.queries:
            if handle in self.followed:
                position, rows = self.followed[handle]
                new = self.nodes[name].engine.invoker.new_rows(handle, Position.parse(position))
                rows += new.rows.to_pylist()
                self.followed[handle] = (new.position(), rows)
                expected_rows = self.twin.invoker.new_rows(twin_handle, Position.parse(BEGINNING)).rows
                assert repr(rows) == repr(expected_rows.to_pylist())


@given(st.integers(0, 1_000_000))
@example_settings(3, explored=5)
def test_random_networks_answer_as_one_server(seed: int) -> None:
    with TemporaryDirectory() as directory:
        test = TwinTest(Path(directory), seed)
        try:
            for _ in range(14):
                often = [test.register, test.push, test.unregister] * 2
                step = test.random.choice([*often, test.register, test.stop, test.start, test.tend, test.receive])
                step()
                if len(test.nodes.running) == len(test.nodes.all):
                    test.tend()
                    test.check()
            test.start()
            test.tend()
            test.check()
            while test.queries:
                test.unregister()
            test.tend()
            assert all(node.federation.links() == [] for node in test.nodes.all.values())
        finally:
            test.close()
