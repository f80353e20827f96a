"""Topologies: routes, files, and what is refused."""

from __future__ import annotations

import pytest

from tureen.errors import TureenError
from tureen.sharing.topology import grid, links_of, parse_topology, random_topology


def test_routes_of_a_grid_are_shortest() -> None:
    topology = grid(4, 4)
    for start in topology.peers:
        distances = topology.distances(start)
        for end in topology.peers:
            route = topology.route(start, end)
            assert (route[0], route[-1]) == (start, end)
            assert set(links_of(route)) <= topology.links
            (x1, y1), (x2, y2) = topology.places[start], topology.places[end]  # type: ignore[index]
            assert len(route) - 1 == distances[end] == abs(x1 - x2) + abs(y1 - y2)


def test_random_topologies_are_connected_and_repeatable() -> None:
    topology = random_topology(50, seed=3)
    assert topology.checked() == random_topology(50, seed=3)
    assert len(topology.links) == 75
    assert random_topology(1).checked().peers == ("SP0",)
    assert len(random_topology(3, degree=10).links) == 3


def test_topology_of_a_file() -> None:
    topology = parse_topology('{"links": [["b", "a"], ["b", "c"]]}')
    assert topology.peers == ("a", "b", "c")
    assert topology.route("a", "c") == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "cannot read the topology"),
        ('{"links": [["a"]]}', "cannot read the topology"),
        ('{"links": [["a", "b"], ["c", "d"]]}', "cannot be reached"),
        ('{"links": [], "peers": []}', "at least one peer"),
        ("nonsense", "cannot read the topology"),
    ],
)
def test_invalid_topologies(text: str, message: str) -> None:
    with pytest.raises(TureenError, match=message):
        parse_topology(text)
