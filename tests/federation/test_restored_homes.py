"""Homes that were restored from a backup or copied: their replicas are not mixed with what they have now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.federation.nodes import Nodes
from tests.federation.trades import NOW, TRADES, push, trades
from tureen.errors import DuplicateName
from tureen.pot.backup import backup_pot
from tureen.pot.streams import drop_stream, find_stream
from tureen.testing.manual_engine import ManualClock, ManualEngine


@pytest.mark.parametrize("is_copied", [True, False])
def test_a_home_that_goes_back_in_time_is_noticed(
    nodes: Nodes, twin: ManualEngine, tmp_path: Path, *, is_copied: bool
) -> None:
    """A copy of its directory has the same identity, but fewer tuples; a backup is another pot."""
    push(nodes, twin, trades(1, 2))
    home, saved = nodes["A"].engine.catalog.root, tmp_path / "saved"
    handle = nodes["B"].register("SELECT price FROM trades")
    if is_copied:
        nodes["A"].stop()
        shutil.copytree(home, saved)
        nodes["A"].start()
    else:
        backup_pot(nodes["A"].engine.catalog, saved, lambda *_: None)
    push(nodes, twin, trades(3, 4))
    nodes["A"].stop()
    shutil.rmtree(home)
    saved.rename(home)
    nodes["A"].start()
    if not is_copied:
        nodes["A"].push("trades", trades(5, 6, 7, 8))
    nodes.receive()
    answer = nodes["B"].invoke(handle)
    assert (sorted(answer.table["price"].to_pylist()), answer.complete) == ([1, 2, 3, 4], False)
    assert "it was created again, or restored from a backup" in (answer.note or "")
    nodes["B"].unregister(handle)
    nodes.tend()
    with nodes["B"].engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "trades"))
    handle = nodes["B"].register("SELECT price FROM trades")
    nodes.receive()
    answer = nodes["B"].invoke(handle)
    expected = [1, 2] if is_copied else [1, 2, 5, 6, 7, 8]
    assert (sorted(answer.table["price"].to_pylist()), answer.complete) == (expected, True)


def test_copies_of_one_pot_are_not_taken_for_one_server(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, ManualClock(NOW), [("A", "B"), ("C", "B")])
    nodes["A"].engine.create_stream("trades", TRADES, "ts")
    nodes["C"].stop()
    nodes["A"].stop()
    shutil.rmtree(tmp_path / "C")
    shutil.copytree(tmp_path / "A", tmp_path / "C")
    nodes["A"].start()
    nodes["C"].start()
    for name in "AC":
        nodes[name].share(nodes["B"], "trades")
    with pytest.raises(DuplicateName, match="stream 'trades' lives at 'A' and 'C'"):
        nodes["B"].register("SELECT price FROM trades")
    nodes["C"].unshare(nodes["B"], "trades")
    handle = nodes["B"].register("SELECT price FROM trades")
    nodes["A"].push("trades", trades(1))
    nodes.receive()
    assert len(nodes["B"].invoke(handle)) == 1
    nodes["C"].share(nodes["B"], "trades")
    nodes["A"].stop()
    other = nodes["B"].register("SELECT sym FROM trades")
    nodes.tend()
    assert [link.peer for link in nodes["B"].links()] == ["A"], "it waits for the home"
    assert not nodes["B"].invoke(other).complete
    nodes.close()
