"""Flows that have more than is needed are narrowed, and those who follow them see no difference."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.federation.nodes import Node, Nodes
from tests.federation.trades import NOW, TRADES, assert_same, new_prices, push, trades
from tureen.federation.federation_settings import FederationSettings
from tureen.federation.network_placement import NetworkPlacement
from tureen.position import BEGINNING, Position
from tureen.pot.streams import Stream, find_stream
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualClock, ManualEngine


def find(node: Node, name: str) -> Stream:
    with node.engine.catalog.read() as tx:
        return find_stream(tx, name)


NARROW = "SELECT price FROM trades WHERE price BETWEEN 10 AND 12"
WIDE = "SELECT price, qty FROM trades WHERE price BETWEEN 5 AND 32"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_wide_flow_is_narrowed_when_its_query_is_gone(nodes: Nodes, twin: ManualEngine, *, is_first: bool) -> None:
    """Also if the narrow query reads the wide replica, because it was registered later."""
    push(nodes, twin, trades(*range(4, 34)))
    texts = [NARROW, WIDE] if is_first else [WIDE, NARROW]
    handles = {}
    for text in texts:
        handles[text] = nodes["C"].register(text)
        nodes.tend()
    seen, position = new_prices(nodes["C"].engine, handles[NARROW], BEGINNING)
    assert seen == [10, 11, 12]
    assert all("BETWEEN 5.0 AND 32.0" in link.flow for name in "BC" for link in nodes[name].links())
    nodes["C"].unregister(handles[WIDE])
    nodes.tend()
    for name in "BC":
        (link,) = nodes[name].links()
        assert "BETWEEN 10.0 AND 12.0" in link.flow
        assert "qty" not in link.flow
    assert nodes["C"].links(local=True) == []
    push(nodes, twin, trades(11, 9, 12, 31))
    assert [state.rows for state in nodes["C"].federation.link_states() if state.link.peer == "B"] == [2]
    assert new_prices(nodes["C"].engine, handles[NARROW], position)[0] == [11, 12]
    assert_same(nodes["C"].invoke(handles[NARROW]), twin.invoke(twin.register(NARROW)))
    other = nodes["D"].register("SELECT price FROM trades WHERE price = 11")
    nodes.receive()
    assert nodes["D"].invoke(other).table["price"].to_pylist() == [11, 11], "B sends no more than that"
    assert [state.rows for state in nodes["D"].federation.link_states()] == [2]
    wide = nodes["C"].register(WIDE)
    nodes.tend()
    assert_same(nodes["C"].invoke(wide), twin.invoke(twin.register(WIDE)))


def test_a_narrowed_flow_has_the_punctuations_of_its_columns(nodes: Nodes, twin: ManualEngine) -> None:
    """Those before and after the change, each once; not those of columns that are not received any more."""
    final = "SELECT price, count(*) AS n FROM trades WHERE price BETWEEN 10 AND 12 GROUP BY price EMIT FINAL"

    def punctuated(engine: ManualEngine, handle: str) -> list[str]:
        new = engine.invoker.new_rows(handle, Position.parse(BEGINNING), punctuations=True)
        return [str(placed.pattern) for placed in new.punctuations]

    push(nodes, twin, [*trades(10, 11, 12, 20), Punctuation(price=10)])
    handles = {text: nodes["C"].register(text) for text in (NARROW, WIDE, final)}
    nodes.tend()
    push(nodes, twin, [*trades(11, 12, 13), Punctuation(qty=5), Punctuation(price=20)])
    nodes["C"].unregister(handles.pop(WIDE))
    nodes.tend()
    assert all("BETWEEN 10.0 AND 12.0" in link.flow for name in "BC" for link in nodes[name].links())
    for values in ({"price": 11}, {"qty": 7}, {"price": 10}, {"price": 12}):
        assert_same(nodes["C"].invoke(handles[final]), twin.invoke(twin.register(final)))
        push(nodes, twin, [*trades(12, 30), Punctuation(**values)])
    assert_same(nodes["C"].invoke(handles[final]), twin.invoke(twin.register(final)))
    assert nodes["C"].invoke(handles[final]).table.to_pylist() == [
        {"price": 10.0, "n": 1},
        {"price": 11.0, "n": 2},
        {"price": 12.0, "n": 6},
    ]
    expected = punctuated(twin, twin.register(NARROW))
    assert punctuated(nodes["C"].engine, handles[NARROW]) == list(dict.fromkeys(expected))


def test_a_flow_is_narrowed_only_after_some_time_without_changes(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    nodes = Nodes(tmp_path, clock, [("A", "B")])
    node = nodes["B"]
    node.federation.settings = FederationSettings(narrow_seconds=300.0)
    nodes["A"].engine.create_stream("trades", TRADES, "ts")
    nodes.share("trades", "A", "B")
    nodes["A"].push("trades", trades(*range(4, 34)))
    wide, narrow = node.register(WIDE), node.register(NARROW)
    nodes.tend()
    (link,) = node.links()

    def is_narrowed_after(seconds: float) -> bool:
        clock.moment += timedelta(seconds=seconds)
        node.planner.tend()
        return node.links()[0].flow != link.flow

    node.unregister(wide)
    assert not is_narrowed_after(0)
    assert not is_narrowed_after(299)
    wide = node.register(WIDE)
    assert [known.flow for known in node.links()] == [link.flow], "it is still there"
    assert not is_narrowed_after(2)
    node.unregister(wide)
    assert not is_narrowed_after(0)
    assert not is_narrowed_after(299)
    node.federation.replica_for(find(node, "trades"), node.engine.invoker.query_of(narrow), 0)
    assert not is_narrowed_after(2), "a registration has claimed it"
    node.federation.release(link.id)
    assert not is_narrowed_after(299)
    assert is_narrowed_after(2)
    nodes.receive()
    assert sorted(node.invoke(narrow).table["price"].to_pylist()) == [10, 11, 12]
    nodes.close()


def test_a_flow_is_not_narrowed_while_a_query_that_needs_it_is_registered(
    nodes: Nodes, twin: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(nodes, twin, trades(*range(4, 34)))
    wide, _ = nodes["B"].register(WIDE), nodes["B"].register(NARROW)
    nodes.tend()
    (link,) = nodes["B"].links()
    nodes["B"].unregister(wide)
    asked = NetworkPlacement.ask_to_keep

    def register_meanwhile(placement: NetworkPlacement, *args: Any) -> None:
        asked(placement, *args)
        monkeypatch.undo()
        nodes["B"].register(WIDE, name="meanwhile")

    monkeypatch.setattr(NetworkPlacement, "ask_to_keep", register_meanwhile)
    nodes["B"].planner.tend()
    assert [known.flow for known in nodes["B"].links()] == [link.flow]
    handle = nodes["B"].standing("meanwhile")
    assert handle is not None
    push(nodes, twin, trades(6, 31))
    assert_same(nodes["B"].invoke(handle), twin.invoke(twin.register(WIDE)))
