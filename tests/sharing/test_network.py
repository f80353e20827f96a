"""Queries in a network: every query gets its rows through the flows, and nothing unused remains."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import TureenError
from tureen.sharing.covering import covers
from tureen.sharing.measured_rates import MeasuredRates, StreamSample
from tureen.sharing.network import EvaluationPlan, Network
from tureen.sharing.network_cost import CostModel, Usage
from tureen.sharing.photon_sample import PHOTONS, photon_sample
from tureen.sharing.planning import Strategy, plan
from tureen.sharing.properties import Properties
from tureen.sharing.simulation import NetworkQuery, SourceStream, bind, random_queries, simulate
from tureen.sharing.topology import Topology, grid, link_of, links_of, random_topology
from tureen.sharing.widening import widened

SAMPLE = photon_sample(2_000, 1)
RATES = MeasuredRates({"photons": SAMPLE})

PAPER = Topology(
    tuple(f"SP{number}" for number in range(8)),
    frozenset(
        link_of(f"SP{a}", f"SP{b}") for a, b in [(4, 5), (5, 1), (5, 7), (4, 6), (6, 7), (0, 1), (0, 2), (2, 6), (3, 7)]
    ),
)
"""The network of Figures 1 and 2, as far as the text tells."""

VELA = "ra >= 120.0 AND ra <= 138.0 AND dec >= -49.0 AND dec <= -40.0"


def network_of(topology: Topology, home: str, costs: CostModel | None = None) -> Network:
    network = Network(topology, RATES, costs or CostModel())
    network.add_stream("photons", PHOTONS, home)
    return network


def query(name: str, sql: str, peer: str) -> NetworkQuery:
    return bind(name, sql, peer, {"photons": PHOTONS})


def register(network: Network, *queries: NetworkQuery, widen: bool = True) -> list[EvaluationPlan]:
    plans = []
    for item in queries:
        plans.append(plan(network, item.properties, item.peer, widen=widen))
        network.register(item.name, item.properties, item.peer, plans[-1])
    return plans


def check(network: Network, queries: list[NetworkQuery], sample: StreamSample = SAMPLE) -> None:
    """Each flow is computed from its source where it passes, has all of its rows, and is counted once."""
    usage = Usage()
    rows: dict[int, np.ndarray] = {}
    for number, flow in sorted(network.flows.items(), key=lambda item: _depth(network, item[0])):
        selected = sample.selected(flow.properties.clause)
        if flow.parent is not None:
            parent = network.flows[flow.parent]
            assert flow.route[0] in parent.route, "a flow starts where its source passes"
            assert covers(PHOTONS, parent.properties, flow.properties)
            assert not (selected & ~rows[flow.parent]).any(), "no row of it is missing in its source"
            usage.add_load(flow.route[0], network.load(parent.properties, flow.properties))
            assert network.users(number), "a flow without users is removed"
        rows[number] = selected
        for link in links_of(flow.route):
            assert link in network.topology.links
            usage.add_traffic(link, RATES.rate(flow.properties).traffic)
    for amounts, expected in ((network.usage.traffic, usage.traffic), (network.usage.load, usage.load)):
        assert {name: round(amount, 4) for name, amount in amounts.items() if abs(amount) > 1e-6} == {
            name: round(amount, 4) for name, amount in expected.items() if abs(amount) > 1e-6
        }
    assert {item.name for item in queries} == set(network.subscriptions)
    for item in queries:
        flow = network.flows[network.subscriptions[item.name].flow]
        assert flow.route[-1] == item.peer or item.peer in flow.route
        assert flow.properties == item.properties


def _depth(network: Network, number: int) -> int:
    parent = network.flows[number].parent
    return 0 if parent is None else 1 + _depth(network, parent)


def test_the_example_of_the_paper() -> None:
    """Query 1 is evaluated at the home; Query 2 taps its stream where the ways part."""
    network = network_of(PAPER, "SP4")
    q1 = query("q1", f"SELECT ra, dec, phc, en, det_time FROM photons WHERE {VELA}", "SP1")
    q2 = query(
        "q2",
        "SELECT ra, dec, en, det_time FROM photons WHERE en >= 1.3 AND ra BETWEEN 130.5 AND 135.5 "
        "AND dec BETWEEN -48.0 AND -45.0",
        "SP7",
    )
    first, second = register(network, q1, q2)
    assert first.tap == "SP4"
    stream = network.subscriptions["q1"].flow
    assert network.flows[stream].route == ("SP4", "SP5", "SP1")
    assert (second.flow, second.tap) == (stream, "SP5")
    assert network.flows[network.subscriptions["q2"].flow].route == ("SP5", "SP7")
    check(network, [q1, q2])
    network.unregister("q1")
    assert stream in network.flows, "Query 2 still uses it"
    network.unregister("q2")
    assert [flow.parent for flow in network.flows.values()] == [None]
    assert not any(round(amount, 6) for amount in network.usage.traffic.values())


def test_aggregates_are_computed_from_finer_windows() -> None:
    network = network_of(PAPER, "SP4")
    hop = "SELECT window_start, avg(en) AS en FROM photons WHERE {} GROUP BY HOP(det_time, INTERVAL '{}' SECOND, {})"
    q3 = query("q3", hop.format(VELA, 10, "INTERVAL '20' SECOND"), "SP1")
    q4 = query("q4", hop.format(VELA, 40, "INTERVAL '60' SECOND"), "SP5")
    _, second = register(network, q3, q4)
    assert second.flow == network.subscriptions["q3"].flow
    assert second.tap == "SP5"
    check(network, [q3, q4])


def test_a_stream_is_widened_for_a_query_on_its_way() -> None:
    network = network_of(grid(1, 6), "SP0")
    small = query("small", "SELECT en FROM photons WHERE ra BETWEEN 120 AND 130", "SP5")
    large = query("large", "SELECT en FROM photons WHERE ra BETWEEN 119 AND 131", "SP5")
    register(network, small)
    (chosen,) = register(network, large)
    assert chosen.widen, "one wide stream over five links is cheaper than two"
    assert network.usage.traffic[link_of("SP0", "SP1")] < 1.5 * RATES.rate(large.properties).traffic
    check(network, [small, large])
    network.unregister("large")
    check(network, [small])


def test_widened_properties_cover_both() -> None:
    left = query("l", "SELECT en FROM photons WHERE ra BETWEEN 10 AND 20 AND dec > 5 AND phc IN (1, 2)", "SP0")
    right = query("r", "SELECT ra FROM photons WHERE ra BETWEEN 15 AND 40 AND dec > 7", "SP0")
    wide = widened(PHOTONS, left.properties, right.properties)
    assert wide is not None
    assert covers(PHOTONS, wide, left.properties)
    assert covers(PHOTONS, wide, right.properties)
    assert widened(PHOTONS, replace(left.properties, stream="other"), right.properties) is None


def test_an_overloaded_peer_is_avoided() -> None:
    """The exponential penalty moves an operator away from a peer that has no capacity left."""
    network = network_of(grid(1, 3), "SP0", CostModel(gamma=0.0, capacity=4 * RATES.rate(WHOLE).frequency))
    everything = query("all", "SELECT * FROM photons", "SP2")
    register(network, everything)
    narrow = [query(f"n{number}", f"SELECT en FROM photons WHERE phc = {number}", "SP2") for number in range(9)]
    plans = register(network, *narrow, widen=False)
    assert len({chosen.tap for chosen in plans}) > 1


WHOLE = Properties("photons", (), frozenset(PHOTONS.names))


@given(st.integers(0, 1_000_000))
@example_settings(12)
def test_random_networks(seed: int) -> None:
    """Any sequence of registrations and unregistrations leaves every query with its rows, and nothing else."""
    generator = random.Random(seed)
    topology = random_topology(generator.randrange(2, 12), seed=seed)
    network = network_of(topology, generator.choice(topology.peers), CostModel(gamma=generator.choice([0.2, 0.9, 1.0])))
    sources = {"photons": SourceStream(topology.peers[0], SAMPLE)}
    queries = random_queries(14, sources, topology, seed, sources=generator.choice([1, 3]))
    standing: list[NetworkQuery] = []
    for item in queries:
        register(network, item, widen=generator.random() < 0.7)
        standing.append(item)
        if generator.random() < 0.3:
            network.unregister(standing.pop(generator.randrange(len(standing))).name)
        check(network, standing)
    for item in standing:
        network.unregister(item.name)
    assert len(network.flows) == 1
    assert not any(round(amount, 4) for amount in (*network.usage.traffic.values(), *network.usage.load.values()))


def test_sharing_needs_less_traffic() -> None:
    topology = grid(4, 4)
    streams = {"photons": SourceStream("SP05", SAMPLE), "survey": SourceStream("SP10", photon_sample(2_000, 2))}
    queries = random_queries(60, streams, topology, 5)
    totals = {
        strategy: simulate(topology, streams, queries, strategy).total
        for strategy in (Strategy.DATA_SHIPPING, Strategy.QUERY_SHIPPING, Strategy.SHARING)
    }
    assert totals[Strategy.SHARING] < totals[Strategy.QUERY_SHIPPING] < totals[Strategy.DATA_SHIPPING] / 10


def test_unknown_peers_and_streams() -> None:
    network = network_of(grid(2, 2), "SP0")
    item = query("q", "SELECT en FROM photons", "nowhere")
    with pytest.raises(TureenError, match="there is no peer 'nowhere'"):
        plan(network, item.properties, item.peer)
    with pytest.raises(TureenError, match="there is no stream 'other'"):
        plan(network, replace(item.properties, stream="other"), "SP1")
    with pytest.raises(TureenError, match="there is no query 'q'"):
        network.unregister("q")
    with pytest.raises(TureenError, match="there is no stream 'x'"):
        query("q", "SELECT en FROM x", "SP1")
    with pytest.raises(TureenError, match="exactly one stream"):
        query("q", "SELECT a.en FROM photons a, photons b", "SP1")
