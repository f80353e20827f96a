"""Partial aggregates over links: every answer is that of a single server that has all tuples, at every position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.federation.nodes import Node, Nodes
from tests.federation.test_random_networks import TwinTest
from tureen.errors import Unsupported
from tureen.federation import flow_reader, frame, peer_requests
from tureen.federation.federation_settings import FederationSettings
from tureen.federation.flow import link_flow
from tureen.federation.network_view import CHEAPER, NetworkView
from tureen.federation.peer_messages import states_json
from tureen.position import Position
from tureen.pot.links import Link
from tureen.sharing import sampled_rates
from tureen.sharing.peer_network import PeerReport
from tureen.testing.group_followers import AppliedAnswer, AppliedChange
from tureen.testing.manual_engine import ManualClock, ManualEngine
from tureen.why.asking import explain_tuples


def aggregated(node: Node) -> list[Link]:
    """The links of a server that receive partial aggregates."""
    return [link for link in node.federation.links() if link_flow(link).aggregation is not None]


class AggregateTwinTest(TwinTest):
    """A network in which most queries have groups in steps, and in which links often change their sources."""

    settings = FederationSettings()
    most_rows = 60

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root, seed)
        self.followers: dict[str, tuple[str, AppliedAnswer]] = {}
        """By handle: the position up to which changes of groups were read, and the answer that they make."""
        self.most_aggregated = 0
        """The most links with partial aggregates that there were at a time."""

    def row(self) -> dict[str, Any]:
        """A row of one of few groups; some are late."""
        pick = self.random
        late = pick.random() < 0.2
        return {
            **super().row(),
            "k": pick.choice([None, 1, 2]),
            "s": pick.choice([None, "ab"]),
            "b": pick.choice([None, 3, -(1 << 53) - 1]) if late else 5,
            "d": pick.choice([None, Decimal("9999999.99"), Decimal("-0.05")]),
            "ts": self.clock.moment - timedelta(seconds=pick.randrange(4000 if late else 300)),
        }

    def text(self) -> str:
        """A random query, mostly with groups in steps."""
        pick = self.random
        if pick.random() < 0.15:
            return super().text()
        width = pick.choice([2, 4, 10])
        window = pick.choice([f"TUMBLE {width} MINUTES", f"RANGE {width} MINUTES SLIDE {pick.choice([2, 6])} MINUTES"])
        calls = ["count(*)", "count(x)", "sum(k)", "avg(k)", "min(s)", "max(x)", "sum(b)", "avg(b)", "sum(d)", "avg(d)"]
        outputs = [f"{call} AS c{number}" for number, call in enumerate(pick.sample(calls, pick.randrange(1, 5)))]
        keys = pick.choice([[], ["k"], ["s"], ["k", "s"]])
        conditions = pick.choice(["", "WHERE k IS NOT NULL", "WHERE k = 1", "WHERE x < 3 AND s IS NOT NULL"])
        group_by = f"GROUP BY {', '.join(keys)}" if keys else ""
        having = pick.choice(["", "HAVING count(*) > 1"]) if keys else ""
        return f"SELECT window_start, {', '.join([*keys, *outputs])} FROM s [{window}] {conditions} {group_by} {having}"

    def wait(self) -> None:
        """Let time pass, after which others are asked for what servers that are away send."""
        self.clock.moment += timedelta(minutes=2)
        self.nodes.tend()

    def check(self) -> None:
        """Compare all answers, and what followers of groups make of the changes."""
        super().check()
        links = [link for node in self.nodes.all.values() for link in aggregated(node)]
        self.most_aggregated = max(self.most_aggregated, len(links))
        for name, handle, twin_handle in self.queries:
            engine, rows = self.nodes[name].engine, self.twin.invoke(twin_handle).table.to_pylist()
            if handle in self.followers:
                position, answer = self.followers[handle]
                changes = engine.invoker.group_changes(handle, Position.parse(position))
                for change in changes.changed:
                    answer.apply(AppliedChange(change.kind, change.row, change.before))
                assert not answer.differences(rows)
                self.followers[handle] = (str(changes.position()), answer)
            elif rows and "window_start" in rows[0] and "HAVING" not in engine.invoker.query_of(handle).sql:
                keys = [column for column in ("window_start", "k", "s") if column in rows[0]]
                self.followers[handle] = (engine.invoke(handle).position, AppliedAnswer(keys, rows))


def test_random_networks_with_partial_aggregates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial aggregates are taken to cost nothing, so that they are received wherever they will do."""
    monkeypatch.setattr(sampled_rates, "window_count", lambda *_: 0)
    counts: list[int] = []

    @given(st.integers(0, 1_000_000))
    @example_settings(3)
    def check(seed: int) -> None:
        with TemporaryDirectory() as directory:
            test = AggregateTwinTest(Path(directory), seed)
            try:
                run(test)
                counts.append(test.most_aggregated)
            finally:
                test.close()

    check()
    assert sum(counts) > 1


def run(test: AggregateTwinTest) -> None:
    """Let many things happen in a network, and compare its answers whenever all servers run."""
    test.push()
    test.register()
    test.register()
    for _ in range(12):
        often = [test.register, test.push, test.push]
        step = test.random.choice([*often, test.unregister, test.stop, test.start, test.receive, test.wait])
        step()
        if len(test.nodes.running) == len(test.nodes.all):
            test.tend()
            test.check()
    test.start()
    test.tend()
    test.check()


NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = "SELECT window_start, g, count(*) AS n, avg(v) AS a, max(v) AS m FROM t [TUMBLE 2 MINUTES] GROUP BY g"
COARSE = (
    "SELECT window_start, sum(v) AS v, count(v) AS c FROM t [RANGE 10 MINUTES SLIDE 4 MINUTES] WHERE g IN (1, 2) "
    "HAVING count(*) > 2"
)
TRIANGLE = [("A", "B"), ("A", "C"), ("B", "C")]


class Pair:
    """A network in which the stream `t` lives at A, and a single server that gets the same."""

    def __init__(self, root: Path, links: list[tuple[str, str]]) -> None:
        self.clock = ManualClock(NOW)
        self.nodes = Nodes(root, self.clock, links, FederationSettings())
        self.twin = ManualEngine(root / "twin", self.clock)
        for engine in (self.nodes["A"].engine, self.twin):
            engine.create_stream("t", "g INT, v INT, f DOUBLE, ts TIMESTAMP", "ts")
        self.count = 0

    def push(self, count: int, minutes: int = 9) -> None:
        """Push rows of the last minutes, and receive them."""
        numbers = range(self.count, self.count + count)
        rows = [
            {
                "g": n % 3,
                "v": None if n % 5 == 4 else n,
                "f": n / 7,
                "ts": NOW - timedelta(seconds=n * 37 % (60 * minutes)),
            }
            for n in numbers
        ]
        self.count += count
        for engine in (self.nodes["A"].engine, self.twin):
            engine.append("t", rows)
        self.nodes.receive()

    def check(self, name: str, handle: str, sql: str) -> None:
        """Compare an answer."""
        answer, expected = self.nodes[name].invoke(handle), self.twin.invoke(self.twin.register(sql, materialize=False))
        assert answer.table.equals(expected.table)
        assert (answer.window, answer.complete, answer.note) == (expected.window, expected.complete, None)
        assert len(expected)

    def placement(self, name: str, handle: str) -> dict[str, Any]:
        """What explain tells about the stream."""
        node, invoker = self.nodes[name], self.nodes[name].engine.invoker
        replicas = invoker.with_prepared(handle, lambda query, *_: query.stream_ids)
        view = NetworkView(node.engine.catalog, node.federation, node.planner)
        (placement,) = view.placements(replicas, invoker.query_of(handle))
        return placement

    def close(self) -> None:
        """Close all pots."""
        self.nodes.close()
        self.twin.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path, TRIANGLE)
    pair.nodes.share("t", "A", "B", "C")
    yield pair
    pair.close()


def received_rows(node: Node) -> int:
    return sum(state.rows for state in node.federation.link_states())


def test_coarser_steps_share_the_rows_that_a_relay_passes_on(pair: Pair) -> None:
    pair.push(400)
    first = pair.nodes["C"].register(MINUTES)
    pair.nodes.tend()
    coarse = pair.nodes["C"].register(COARSE)
    pair.nodes.tend()
    for name in "BC":
        (link,) = aggregated(pair.nodes[name])
        assert pair.nodes[name].federation.links() == [link], "the second query needs nothing more"
    assert received_rows(pair.nodes["C"]) < 20
    before = received_rows(pair.nodes["C"])
    pair.push(1, minutes=600)
    assert received_rows(pair.nodes["C"]) == before + 1, "a late tuple is a row of its own"
    for handle, sql in ((first, MINUTES), (coarse, COARSE)):
        pair.check("C", handle, sql)
    placement = pair.placement("C", coarse)
    assert (placement["rows_are"], placement["tuples_because"]) == ("partial aggregates", None)
    assert placement["selected_at"] == "A"
    with pytest.raises(Unsupported, match="computed from partial aggregates"):
        explain_tuples(pair.nodes["C"].engine.invoker, coarse, "v = 3", None, 10)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT window_start, sum(f) AS x FROM t [TUMBLE 2 MINUTES]", "sum of DOUBLE"),
        ("SELECT window_start, count(DISTINCT g) AS x FROM t [TUMBLE 2 MINUTES]", "count of several steps"),
        ("SELECT window_start, sum(v + 1) AS x FROM t [TUMBLE 2 MINUTES]", "not a column"),
        ("SELECT window_start, count(*) AS x FROM t [TUMBLE 2 MINUTES] GROUP BY g % 2", "more than columns"),
        ("SELECT window_start, count(*) AS x FROM t [TUMBLE 2 MINUTES] WHERE v % 2 = 0", "may fail"),
        ("SELECT count(*) AS x FROM t [RANGE 2 MINUTES]", "whole steps"),
        ("SELECT window_start, v FROM t [TUMBLE 2 MINUTES]", "its rows are tuples"),
    ],
)
def test_queries_that_need_tuples(pair: Pair, sql: str, reason: str) -> None:
    pair.push(60)
    handle = pair.nodes["B"].register(sql)
    pair.nodes.tend()
    assert aggregated(pair.nodes["B"]) == []
    assert reason in pair.placement("B", handle)["tuples_because"]
    pair.check("B", handle, sql)


def test_a_flow_of_tuples_that_is_there_is_used(pair: Pair) -> None:
    pair.push(60)
    pair.nodes["B"].register("SELECT * FROM t")
    handle = pair.nodes["B"].register(MINUTES)
    pair.nodes.tend()
    assert aggregated(pair.nodes["B"]) == []
    assert pair.placement("B", handle)["tuples_because"] == CHEAPER
    pair.check("B", handle, MINUTES)


def test_rows_are_continued_from_tuples_when_the_source_changes(pair: Pair) -> None:
    """B has partial aggregates that begin at other ids than those that C has from A."""
    nodes = pair.nodes
    pair.push(100)
    nodes["A"].share(nodes["C"], "t")
    nodes["A"].unshare(nodes["B"], "t")
    first = nodes["C"].register(MINUTES)
    nodes.receive()
    nodes["A"].share(nodes["B"], "t")
    pair.push(30)
    second = nodes["B"].register(MINUTES)
    nodes.receive()
    assert [link.peer for name in "BC" for link in aggregated(nodes[name])] == ["A", "A"]
    nodes["B"].stop()
    pair.push(30)
    nodes["A"].unshare(nodes["C"], "t")
    nodes["B"].start()
    pair.push(30)
    (link,) = nodes["C"].links()
    nodes["C"].federation.change_source(link, "B")
    pair.push(30)
    assert nodes["C"].federation.link_states()[0].state == "refused"
    nodes.tend()
    pair.push(30)
    assert [link.peer for link in nodes["C"].links()] == ["B"]
    assert [link.flow.startswith("SELECT count") for link in nodes["B"].links()].count(False) == 1, "B has tuples, too"
    for name, handle in (("C", first), ("B", second)):
        pair.check(name, handle, MINUTES)


def test_a_peer_that_does_not_know_partial_aggregates_sends_tuples(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def states_of_version_8(states: Iterable[PeerReport]) -> dict[str, Any]:
        content = states_json(states)
        for peer in content["peers"]:
            del peer["aggregates"]
        return content

    monkeypatch.setattr(peer_requests, "states_json", states_of_version_8)
    pair.push(200)
    handle = pair.nodes["C"].register(MINUTES)
    pair.nodes.tend()
    assert [aggregated(pair.nodes[name]) for name in "BC"] == [[], []]
    pair.check("C", handle, MINUTES)


def test_long_histories_are_passed_on_in_whole_frames(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (flow_reader, frame):
        monkeypatch.setattr(module, "FRAME_ROWS", 20)
    monkeypatch.setattr(flow_reader, "READ_TUPLES", 40)
    pair.push(30)
    fine = "SELECT window_start, g, count(*) AS n, sum(v) AS v FROM t [TUMBLE 1 SECOND] GROUP BY g"
    monkeypatch.setattr(sampled_rates, "window_count", lambda *_: 0)
    first = pair.nodes["B"].register(fine)
    for count in (45, 13, 13, 13, 13, 7, 50, 1, 13):
        pair.push(count, minutes=90)
    second = pair.nodes["C"].register(fine)
    pair.push(50)
    pair.nodes["C"].restart()
    pair.push(50)
    pair.nodes["C"].federation.step()
    assert len(aggregated(pair.nodes["B"])) == len(aggregated(pair.nodes["C"])) == 1
    for name, handle in (("B", first), ("C", second)):
        pair.check(name, handle, fine)


def test_an_unregistered_query_receives_partial_aggregates(pair: Pair) -> None:
    pair.push(90)
    pair.nodes["B"].answer(COARSE)
    pair.nodes.receive()
    assert len(aggregated(pair.nodes["B"])) == 1
    expected = pair.twin.invoke(pair.twin.register(COARSE, materialize=False))
    assert pair.nodes["B"].answer(COARSE).table.equals(expected.table)
    assert len(expected)


def test_kept_results_and_upkeep(pair: Pair) -> None:
    pair.push(90)
    handle = pair.nodes["B"].register(COARSE, materialize=True)
    for _ in range(3):
        pair.push(40)
        pair.nodes["B"].upkeep()
        pair.check("B", handle, COARSE)
    assert len(aggregated(pair.nodes["B"])) == 1
