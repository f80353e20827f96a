"""A network from what peers tell: the paper's example hop by hop, and every plan gives a query its rows."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import TureenError
from tureen.sharing.covering import covers
from tureen.sharing.measured_rates import MeasuredRates
from tureen.sharing.peer_network import Hop, PeerNetwork, PeerReport, ReceivedFlow, checked_hops
from tureen.sharing.photon_sample import PHOTONS, photon_queries, photon_sample
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import parse_selection, selection_text, shippable
from tureen.sharing.simulation import bind
from tureen.sharing.topology import Topology, link_of, random_topology

RATES = MeasuredRates({"photons": photon_sample(1_000, 1)})
CHAIN = Topology(("A", "B", "C", "D"), frozenset({link_of("A", "B"), link_of("B", "C"), link_of("B", "D")}))
VELA = "ra >= 120.0 AND ra <= 138.0 AND dec >= -49.0 AND dec <= -40.0"
RXJ = "en >= 1.3 AND ra >= 130.5 AND ra <= 135.5 AND dec >= -48.0 AND dec <= -45.0"


def needed(sql: str) -> Properties:
    return shippable(PHOTONS, bind("q", sql, "A", {"photons": PHOTONS}).properties.source)


def states_of(topology: Topology, home: str) -> dict[str, PeerReport]:
    return {
        peer: PeerReport(peer, peer == home, () if peer == home else tuple(topology.neighbours[peer]))
        for peer in topology.peers
    }


def network_of(states: dict[str, PeerReport]) -> PeerNetwork:
    return PeerNetwork("photons", PHOTONS, states.values(), RATES)


def carry_out(states: dict[str, PeerReport], hops: list[Hop]) -> None:
    """Change what peers receive, as they would: a flow that a wider one covers is computed from it."""
    for hop in hops:
        state, new = states[hop.peer], ReceivedFlow(hop.sender, hop.text)
        flows = [flow for flow in state.flows if not covers(PHOTONS, _read(new), _read(flow))]
        states[hop.peer] = replace(state, flows=(*flows, new))


def test_the_example_of_the_paper() -> None:
    """Query 1 is evaluated at the home; Query 2 taps its stream where the ways part."""
    states = states_of(CHAIN, "A")
    first = needed(f"SELECT ra, dec, phc, en, det_time FROM photons WHERE {VELA}")
    hops = network_of(states).hops(first, "C")
    text = selection_text(PHOTONS, first)
    assert hops == [Hop("B", "A", text), Hop("C", "B", text)]
    carry_out(states, hops)
    second = needed(f"SELECT ra, dec, en, det_time FROM photons WHERE {RXJ}")
    hops = network_of(states).hops(second, "D")
    assert hops == [Hop("D", "B", selection_text(PHOTONS, second))]
    carry_out(states, hops)
    network = network_of(states)
    assert network.hops(second, "C") == [Hop("C", "B", text)], "its rows are there already"
    assert network.hops(second, "A") == []
    assert network.route_of("D", states["D"].flows[0]) == ["A", "B", "D"]


def test_a_flow_is_widened_from_its_source_on() -> None:
    states = states_of(CHAIN, "A")
    small, large = (
        needed(f"SELECT en FROM photons WHERE ra BETWEEN {low} AND {high}") for low, high in ((9, 80), (5, 84))
    )
    carry_out(states, network_of(states).hops(small, "C"))
    hops = network_of(states).hops(large, "C")
    text = selection_text(PHOTONS, large)
    assert hops == [Hop("B", "A", text), Hop("C", "B", text)]
    carry_out(states, hops)
    assert states["C"].flows == (ReceivedFlow("B", text),)


def test_streams_are_sent_only_to_whom_they_are_shared_with() -> None:
    states = states_of(CHAIN, "A")
    states["B"] = replace(states["B"], senders=("A",))
    states["A"] = replace(states["A"], senders=())
    every = needed("SELECT en FROM photons")
    assert [(hop.sender, hop.peer) for hop in network_of(states).hops(every, "D")] == [("A", "B"), ("B", "D")]
    states["D"] = replace(states["D"], senders=())
    with pytest.raises(TureenError, match="no route"):
        network_of(states).hops(every, "D")


def test_what_cannot_be_read_is_left_out() -> None:
    states = states_of(CHAIN, "A")
    whole = selection_text(PHOTONS, needed("SELECT * FROM photons"))
    flows = (ReceivedFlow("B", whole), ReceivedFlow("B", "garbage"), ReceivedFlow("nobody", whole))
    states["C"] = replace(states["C"], flows=flows)
    network = network_of(states)
    assert len(network.network.flows) == 1, "B receives nothing that it could send to C"
    assert len(network.hops(needed("SELECT en FROM photons"), "C")) == 2


def test_hops_are_one_route() -> None:
    assert checked_hops([Hop("B", "A", ""), Hop("C", "B", "")], 2)
    with pytest.raises(TureenError, match="cannot continue"):
        checked_hops([Hop("B", "A", ""), Hop("C", "A", "")], 2)
    with pytest.raises(TureenError, match="more than 1"):
        checked_hops([Hop("B", "A", ""), Hop("C", "B", "")], 1)


@given(st.integers(0, 1_000_000))
@example_settings(6)
def test_random_registrations(seed: int) -> None:
    """Each query is covered by what its peer receives, and each flow by what its sender has."""
    generator = random.Random(seed)
    topology = random_topology(generator.randrange(2, 8), seed=seed)
    home = generator.choice(topology.peers)
    states, served = states_of(topology, home), []
    for query in photon_queries(10, ["photons"], len(topology.peers), seed, sources=2):
        peer = topology.peers[query.peer]
        rows = needed(query.sql)
        hops = network_of(states).hops(rows, peer, widen=generator.random() < 0.8)
        assert not hops or hops[-1].peer == peer
        checked_hops(hops, len(states))
        carry_out(states, hops)
        served.append((peer, rows))
        for name, properties in served:
            assert name == home or any(covers(PHOTONS, _read(flow), properties) for flow in states[name].flows)
        for state in states.values():
            for flow in state.flows:
                sender = states[flow.sender]
                assert sender.is_home or any(covers(PHOTONS, _read(above), _read(flow)) for above in sender.flows)


def _read(flow: ReceivedFlow) -> Properties:
    return parse_selection(flow.text, "photons", PHOTONS)
