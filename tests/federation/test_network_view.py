"""The network as people see it: routes, where rows are selected, and what is kept for whom."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.federation.nodes import Nodes
from tureen.federation.network_view import NetworkView
from tureen.testing.manual_engine import ManualClock


def view_of(nodes: Nodes, name: str) -> NetworkView:
    node = nodes[name]
    return NetworkView(node.engine.catalog, node.federation, node.planner)


def test_routes_and_links(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), [("A", "B"), ("B", "C"), ("B", "D")])
    nodes["A"].engine.create_stream("t", "k INT, ts TIMESTAMP", "ts")
    nodes.share("t", "A", "B", "C")
    nodes.share("t", "B", "D")
    places = []
    for name, low in (("C", 1), ("D", 5)):
        handle = nodes[name].register(f"SELECT k FROM t WHERE k > {low}")
        nodes.tend()
        replicas = nodes[name].engine.invoker.with_prepared(handle, lambda query, *_: query.stream_ids)
        query = nodes[name].engine.invoker.query_of(handle)
        (placement,) = view_of(nodes, name).placements(replicas, query)
        places.append((placement["home"], placement["route"], placement["selected_at"], placement["queries"]))
    assert places == [("A", ["A", "B", "C"], "A", 1), ("A", ["A", "B", "D"], "B", 1)]
    network = view_of(nodes, "B").describe()
    (link,) = network["links"]
    assert (link["peer"], link["queries"], link["kept_for"]) == ("A", 0, ["C", "D"])
    assert [server["name"] for server in network["streams"][0]["servers"]] == ["B", "A"]
    nodes.close()
