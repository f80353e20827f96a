"""Hierarchical networks: connected subnets, and queries that cross them."""

from __future__ import annotations

import pytest

from tureen.errors import TureenError
from tureen.sharing.network_picture import picture
from tureen.sharing.photon_sample import photon_sample
from tureen.sharing.planning import Strategy
from tureen.sharing.simulation import SourceStream, random_queries, simulate
from tureen.sharing.subnets import partition
from tureen.sharing.topology import grid, random_topology

STREAMS = {
    "photons": SourceStream("SP05", photon_sample(1_000, 1)),
    "survey": SourceStream("SP30", photon_sample(1_000, 2)),
}


@pytest.mark.parametrize("count", [1, 4, 36])
def test_subnets_are_connected_and_disjoint(count: int) -> None:
    topology = grid(6, 6)
    division = partition(topology, count)
    members = division.members()
    assert len(members) == count
    assert sorted(peer for peers in members.values() for peer in peers) == sorted(topology.peers)
    for gateway, peers in members.items():
        assert gateway in peers
        reached = {gateway}
        while True:
            more = {near for peer in reached for near in topology.neighbours[peer] if near in peers} - reached
            if not more:
                break
            reached |= more
        assert reached == set(peers)


def test_too_many_subnets() -> None:
    with pytest.raises(TureenError, match="from 1 to 5, got 6"):
        partition(random_topology(5), 6)


def test_queries_in_subnets_need_less_traffic_than_query_shipping() -> None:
    topology = grid(6, 6)
    queries = random_queries(60, STREAMS, topology, 3)
    flat = simulate(topology, STREAMS, queries, Strategy.SHARING)
    divided = simulate(topology, STREAMS, queries, Strategy.SHARING, subnets=6)
    shipped = simulate(topology, STREAMS, queries, Strategy.QUERY_SHIPPING)
    assert flat.total <= divided.total < shipped.total
    assert simulate(topology, STREAMS, queries, Strategy.SHARING, subnets=1).total == pytest.approx(flat.total)


def test_a_picture_shows_every_link_and_peer() -> None:
    topology = grid(6, 6)
    result = simulate(topology, STREAMS, random_queries(10, STREAMS, topology, 3), Strategy.SHARING)
    text = picture(topology, [result, result], {"pho<tons": "SP05"})
    assert text.count("<line ") == 2 * len(topology.links)
    assert text.count("<circle ") == 2 * len(topology.peers)
    assert "pho&lt;tons" in text
