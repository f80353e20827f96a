"""Queries in a network of servers: planned together, answered as by one server, and nothing unused remains."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.federation.nodes import Nodes
from tests.federation.trades import NOW, TRADES, assert_same, new_prices, push, trades
from tureen.errors import PeerFailed, StorageFailed, UnknownStream
from tureen.federation.flow_reader import FlowReader
from tureen.federation.listing import describe_peers
from tureen.federation.neighbour import NETWORK_PATH
from tureen.federation.peer_quota import PeerQuota
from tureen.federation.peering import MOST_ASKING
from tureen.position import BEGINNING
from tureen.pot.peers import Peer
from tureen.results.snapshot.view import View
from tureen.testing.manual_engine import ManualClock, ManualEngine
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME, photons


def test_the_queries_of_the_paper(nodes: Nodes, twin: ManualEngine) -> None:
    """Query 2 taps the stream of Query 1 where the ways part; Queries 3 and 4 need nothing more."""
    for engine in (nodes["A"].engine, twin):
        engine.create_stream("photons", SCHEMA, TIME, clock="stream", item=ITEM)
    nodes.share("photons", "A", "B", "C")
    nodes.share("photons", "B", "D")
    places = dict(zip(QUERIES, ("C", "D", "B", "C"), strict=True))
    rows = list(photons(600))
    nodes["A"].engine.append("photons", rows[:200])
    twin.append("photons", rows[:200])
    handles = {}
    for name, peer in places.items():
        handles[name] = (
            nodes[peer].register(QUERIES[name], language="wxquery"),
            twin.register(QUERIES[name], language="wxquery"),
        )
        nodes.receive()
    for start in (200, 400):
        nodes["A"].engine.append("photons", rows[start : start + 200])
        twin.append("photons", rows[start : start + 200])
        nodes.receive()
        for name, (handle, twin_handle) in handles.items():
            assert_same(nodes[places[name]].invoke(handle), twin.invoke(twin_handle))
            assert len(twin.invoke(twin_handle))
    assert [(name, link.peer) for name in "BCD" for link in nodes[name].links()] == [("B", "A"), ("C", "B"), ("D", "B")]
    assert nodes["B"].links()[0].flow == nodes["C"].links()[0].flow != nodes["D"].links()[0].flow
    traffic = nodes.traffic()
    assert traffic["B-D"] < traffic["A-B"] == traffic["B-C"]


def test_a_flow_is_widened_and_followers_see_no_difference(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(5, 15, 25, 35))
    narrow = nodes["C"].register("SELECT price FROM trades WHERE price BETWEEN 10 AND 30")
    nodes.receive()
    seen, position = new_prices(nodes["C"].engine, narrow, BEGINNING)
    assert seen == [15, 25]
    push(nodes, twin, trades(11, 99))
    wide = nodes["C"].register("SELECT price, qty FROM trades WHERE price BETWEEN 8 AND 32")
    push(nodes, twin, trades(12, 9))
    nodes.tend()
    assert [len(nodes[name].links()) for name in "BC"] == [1, 1], "one flow over each link"
    assert [len(nodes[name].links(local=True)) for name in "BC"] == [0, 1], "the narrow one is computed from it"
    push(nodes, twin, trades(13, 31, 99))
    prices, position = new_prices(nodes["C"].engine, narrow, position)
    assert prices == [11, 12, 13]
    assert new_prices(nodes["C"].engine, narrow, position)[0] == []
    twin_handles = [
        twin.register(f"SELECT price{more} FROM trades WHERE price BETWEEN {low} AND {high}")
        for low, high, more in ((10, 30, ""), (8, 32, ", qty"))
    ]
    for handle, twin_handle in zip((narrow, wide), twin_handles, strict=True):
        assert_same(nodes["C"].invoke(handle), twin.invoke(twin_handle))


def test_unregistering_removes_what_nobody_uses(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2, 3))
    first = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    second = nodes["D"].register("SELECT price FROM trades WHERE price > 2")
    nodes.tend()
    assert [len(nodes[name].links()) for name in "BCD"] == [1, 1, 1]
    nodes["C"].unregister(first)
    nodes.tend()
    assert [len(nodes[name].links()) for name in "BCD"] == [1, 0, 1], "Query 2 still uses what B receives"
    assert len(nodes["D"].invoke(second)) == 1
    nodes["D"].unregister(second)
    nodes.tend()
    assert [len(nodes[name].federation.links()) for name in "ABCD"] == [0, 0, 0, 0]


def test_servers_that_are_away_and_come_back(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2))
    handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    nodes.receive()
    nodes["B"].stop()
    push(nodes, twin, trades(3))
    answer = nodes["C"].invoke(handle)
    assert (answer.table["price"].to_pylist(), answer.complete) == ([2], False)
    assert "'B' has been away" in (answer.note or "")
    nodes["C"].planner.tend()
    nodes["B"].start()
    nodes.tend()
    assert_same(nodes["C"].invoke(handle), twin.invoke(twin.register("SELECT price FROM trades WHERE price > 1")))
    nodes["C"].stop()
    push(nodes, twin, trades(4))
    nodes.tend()
    assert len(nodes["B"].links()) == 1, "it is kept for C"
    nodes["C"].start()
    nodes.receive()
    assert sorted(nodes["C"].invoke(handle).table["price"].to_pylist()) == [2, 3, 4]


def test_a_link_moves_to_another_peer_when_its_own_is_away_for_long(tmp_path: Path, twin: ManualEngine) -> None:
    clock = ManualClock(NOW)
    nodes = Nodes(tmp_path / "triangle", clock, [("A", "B"), ("A", "C"), ("B", "C")])
    nodes["A"].engine.create_stream("trades", TRADES, "ts")
    nodes.share("trades", "A", "B", "C")
    push(nodes, twin, trades(1, 2))
    handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    nodes.receive()
    nodes["A"].share(nodes["C"], "trades")
    nodes["B"].stop()
    push(nodes, twin, trades(3, 4))
    clock.moment += timedelta(seconds=nodes["C"].federation.settings.away_seconds - 1)
    nodes["C"].planner.tend()
    assert [link.peer for link in nodes["C"].links()] == ["B"], "it may come back"
    assert not nodes["C"].invoke(handle).complete
    clock.moment += timedelta(seconds=2)
    nodes["C"].planner.tend()
    assert [link.peer for link in nodes["C"].links()] == ["A"]
    nodes.receive()
    expected = twin.invoke(twin.register("SELECT price FROM trades WHERE price > 1"))
    assert_same(nodes["C"].invoke(handle), expected)
    nodes["B"].start()
    nodes.tend()
    nodes["B"].planner.tend()
    assert [link.peer for link in nodes["C"].links()] == ["A"], "it stays where it is"
    assert nodes["B"].links() == [], "what it kept is not needed any more"
    assert_same(nodes["C"].invoke(handle), expected)
    nodes.close()


def test_a_query_is_registered_while_its_peer_is_away(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2))
    nodes["A"].stop()
    handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    nodes.receive()
    assert not nodes["C"].invoke(handle).complete
    nodes["A"].start()
    nodes.tend()
    assert_same(nodes["C"].invoke(handle), twin.invoke(twin.register("SELECT price FROM trades WHERE price > 1")))


def test_a_query_is_registered_while_too_many_wait_for_peers(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2))
    assert nodes["C"].federation.find_remote("trades")
    with ExitStack() as stack:
        for _ in range(MOST_ASKING):
            stack.enter_context(nodes["C"].federation.peering.asking())
        handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    assert [link.peer for link in nodes["C"].federation.links()] == ["C"], "it waits to be planned"
    assert not nodes["C"].invoke(handle).complete
    nodes.tend()
    assert_same(nodes["C"].invoke(handle), twin.invoke(twin.register("SELECT price FROM trades WHERE price > 1")))


def test_a_server_whose_asker_gives_up_asks_nobody(nodes: Nodes) -> None:
    stream = nodes["B"].federation.serving.info(None).streams[0]
    body, handle = {"origin": stream.origin}, nodes["B"].planner.requests.handle
    names = [
        [peer["name"] for peer in handle("C", "POST", NETWORK_PATH, body, seconds)["peers"]] for seconds in (None, 0.0)
    ]
    assert names == [["B", "A"], ["B"]]


def test_a_disk_that_is_full_delays_and_loses_nothing(
    nodes: Nodes, twin: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(nodes, twin, trades(1, 2))
    handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    nodes.receive()
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> None:
            raise StorageFailed("cannot write to the pot", detail="No space left on device")

        patch.setattr(nodes["C"].engine.inbox, "push", fail)
        push(nodes, twin, trades(3, 4))
        answer = nodes["C"].invoke(handle)
        assert (answer.table["price"].to_pylist(), answer.complete) == ([2], False)
        assert "could not be stored since" in (answer.note or "")
        nodes["C"].planner.tend()
    push(nodes, twin, trades(5))
    assert_same(nodes["C"].invoke(handle), twin.invoke(twin.register("SELECT price FROM trades WHERE price > 1")))


def test_what_a_peer_lost_is_asked_for_again(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2))
    handle = nodes["C"].register("SELECT price FROM trades WHERE price > 1")
    nodes.receive()
    with nodes["B"].engine.catalog.write() as tx:
        tx.execute_text("DELETE FROM held_flows")
    nodes["B"].planner.tend()
    assert nodes["B"].links() == []
    push(nodes, twin, trades(3))
    assert not nodes["C"].invoke(handle).complete
    nodes.tend()
    nodes.receive()
    assert sorted(nodes["C"].invoke(handle).table["price"].to_pylist()) == [2, 3]
    assert nodes["C"].invoke(handle).complete


def test_a_peer_has_no_more_flows_kept_than_it_may(nodes: Nodes, twin: ManualEngine) -> None:
    push(nodes, twin, trades(1, 2, 3))
    nodes["B"].federation.serving.sent.quota = PeerQuota(flows=1)
    first = nodes["C"].register("SELECT price FROM trades WHERE price = 1")
    second = nodes["C"].register("SELECT price FROM trades WHERE price = 2")
    nodes.receive()
    assert (nodes["C"].invoke(first).complete, nodes["C"].invoke(second).complete) == (True, False)
    assert len(nodes["B"].links()) == 1, "nothing was received in vain"
    (peer,) = [entry for entry in describe_peers(nodes["B"].federation) if entry["name"] == "C"]
    assert peer["kept"] == 1
    assert peer["refused"] > 0
    nodes["C"].unregister(first)
    nodes.tend()
    assert_same(nodes["C"].invoke(second), twin.invoke(twin.register("SELECT price FROM trades WHERE price = 2")))


def test_windows_that_count_rows_and_joins(nodes: Nodes, twin: ManualEngine) -> None:
    texts = [
        "SELECT price FROM trades [ROWS 3] WHERE sym = 'a'",
        "SELECT sym, sum(qty) AS n FROM trades [RANGE 1 HOUR] WHERE price % 2 = 0 GROUP BY sym",
        "SELECT t.price, l.w FROM trades AS t JOIN labels AS l ON t.sym = l.sym WHERE t.price > 3",
        "SELECT a.price FROM trades AS a JOIN trades AS b ON a.qty = b.qty WHERE a.price > 2 AND b.price < 6",
    ]
    for engine in (nodes["D"].engine, twin):
        engine.create_stream("labels", "sym STRING, w INT, at TIMESTAMP", "at")
        engine.append("labels", [{"sym": "a", "w": 7, "at": NOW}])
    push(nodes, twin, trades(1, 2, 3, 4, 5))
    handles = [(nodes["D"].register(text), twin.register(text)) for text in texts]
    push(nodes, twin, trades(6, 7, 4.5))
    for handle, twin_handle in handles:
        assert len(twin.invoke(twin_handle))
        assert_same(nodes["D"].invoke(handle), twin.invoke(twin_handle))


def test_what_is_not_shared_does_not_exist(nodes: Nodes) -> None:
    nodes["A"].engine.create_stream("secrets", "a INT")
    with pytest.raises(UnknownStream, match="no stream or table named 'secrets'"):
        nodes["B"].register("SELECT a FROM secrets")
    origin = nodes["A"].federation.serving.info(None).streams[-1].origin
    for path in ("network", "sample", "flows"):
        body = {"origin": origin, "flow": "SELECT `a` FROM `secrets`"}
        with pytest.raises(UnknownStream, match="no such stream"):
            nodes["A"].planner.requests.handle("B", "POST", f"/v1/federation/{path}", body)
    handle = nodes["C"].register("SELECT price FROM trades")
    nodes.receive()
    nodes["B"].unshare(nodes["C"], "trades")
    nodes.receive()
    answer = nodes["C"].invoke(handle)
    assert not answer.complete
    assert "refused" in (answer.note or "")


def test_a_peer_has_the_name_of_its_server_with_its_letters(tmp_path: Path) -> None:
    """Else it would not be found among those that wait for an answer, and be asked in a circle."""
    nodes = Nodes(tmp_path, ManualClock(NOW), [("A", "B"), ("A", "C"), ("B", "C")])
    nodes["A"].engine.create_stream("trades", TRADES, "ts")
    nodes.share("trades", "A", "B", "C", "B")
    nodes["B"].federation.peering.remove("C")
    nodes["B"].federation.peering.add(Peer("c", "http://nowhere"))
    nodes["C"].share(nodes["B"], "trades")
    with pytest.raises(PeerFailed, match="the server is named 'C'"):
        nodes["B"].federation.peering.info("c")
    nodes["B"].register("SELECT sym FROM trades WHERE qty > 1")
    assert [link.peer for link in nodes["B"].links()] == ["A"]
    nodes.close()


def test_what_a_relay_gets_while_it_reads_is_still_missing(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes["A"].push("trades", [{"sym": "IBM", "price": 1.0, "qty": 1, "ts": NOW}])
    handle = nodes["C"].register("SELECT sym FROM trades")
    read = FlowReader._new_rows

    def read_before_rows_come(reader: FlowReader, *args: Any) -> Any:
        new = read(reader, *args)
        if reader._source.progress is not None:
            nodes["B"].federation.step()
        return new

    monkeypatch.setattr(FlowReader, "_new_rows", read_before_rows_come)
    nodes["C"].federation.step()
    answer = nodes["C"].invoke(handle)
    assert (len(answer), answer.complete) == (0, False)
    nodes.receive()
    answer = nodes["C"].invoke(handle)
    assert (len(answer), answer.complete) == (1, True)


@pytest.mark.parametrize("sql", ["SELECT sym FROM trades", "SELECT a.sym FROM trades a JOIN trades b ON a.sym = b.sym"])
def test_what_is_received_while_an_answer_is_computed_is_still_missing(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    nodes["A"].push("trades", [{"sym": "IBM", "price": 1.0, "qty": 1, "ts": NOW}])
    handle = nodes["B"].register(sql)
    current, receiver = View._current, nodes["B"].engine.invoker.view

    def read_before_rows_come(view: View, *args: Any) -> Any:
        snapshot = current(view, *args)
        # Pots that other tests have opened read in threads of their own.
        if view is receiver:
            monkeypatch.setattr(View, "_current", current)
            nodes.receive()
        return snapshot

    monkeypatch.setattr(View, "_current", read_before_rows_come)
    answer = nodes["B"].invoke(handle)
    assert (len(answer), answer.complete) == (0, False)
    answer = nodes["B"].invoke(handle)
    assert (len(answer), answer.complete) == (1, True)
