"""Sharing of streams: matching thousands of derived streams, and Fig. 5 of Data Stream Sharing."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.plot import draw
from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.predicate import AnyOf, Clause, Compare, Interval, Predicate, Within
from tureen.sharing.covering import covers
from tureen.sharing.measured_rates import MeasuredRates
from tureen.sharing.network import Network
from tureen.sharing.network_cost import CostModel
from tureen.sharing.photon_sample import PHOTONS, photon_sample
from tureen.sharing.planning import Strategy, plan
from tureen.sharing.properties import Properties
from tureen.sharing.simulation import SimulationResult, SourceStream, random_queries, register_all, simulate
from tureen.sharing.stream_index import StreamIndex
from tureen.sharing.topology import Topology, grid

SEED = 7
GRID = (4, 4)


def measure(report: Report, scale: Scale) -> None:
    """All measurements, and the plot of Fig. 5."""
    measure_matching(report, scale)
    streams = _streams(scale, ("SP05", "SP10"))
    results = measure_figure(report, streams, scale)
    plot(results, report, scale)
    measure_planning(report, streams, scale)
    measure_subnets(report, scale)


def _streams(scale: Scale, homes: tuple[str, str]) -> dict[str, SourceStream]:
    return {
        name: SourceStream(home, photon_sample(scale.photons, number))
        for number, (name, home) in enumerate(zip(("photons", "survey"), homes, strict=True))
    }


def measure_matching(report: Report, scale: Scale) -> None:
    """A new query is matched with thousands of derived streams of its input."""
    generator = np.random.default_rng(SEED)
    index: StreamIndex[int] = StreamIndex()
    streams = [Properties("photons", _selection(generator), frozenset(PHOTONS.names)) for _ in range(scale.derived)]
    for number, properties in enumerate(streams):
        index.add(number, properties, PHOTONS)
    queries = [
        Properties("photons", (*_selection(generator), Compare("dx", "<", "dy")), frozenset({"ra", "dec"}))
        for _ in range(60)
    ]
    expected = [number for number, stream in enumerate(streams) if covers(PHOTONS, stream, queries[0])]
    assert sorted(index.covering(queries[0])) == expected
    times: list[float] = []
    for query in queries:
        begin = perf_counter()
        index.covering(query)
        times.append(perf_counter() - begin)
    report.add(f"matching {scale.derived:,} derived streams, median", 1e3 * median(times), "ms")
    report.add("the same, slowest", 1e3 * max(times), "ms")
    report.reach("matching", 1e3 * median(times))


def _selection(generator: np.random.Generator) -> Clause:
    """A region of the sky, often with an energy, sometimes with a comparison of columns or an OR."""
    ra, dec = generator.uniform(0, 300), generator.uniform(-90, 50)
    factors: list[Predicate] = [
        Within("dec", (Interval(float(dec), float(dec + generator.uniform(1, 40))),)),
        Within("ra", (Interval(float(ra), float(ra + generator.uniform(1, 60))),)),
    ]
    if generator.random() < 0.5:
        factors.append(Within("en", (Interval(float(generator.uniform(0, 2))),)))
    if generator.random() < 0.2:
        factors.append(Compare("dx", "<", "dy", int(generator.integers(5))))
    if generator.random() < 0.1:
        factors.append(AnyOf((Within("phc", (Interval(3),)), Within("dx", (Interval(3),)))))
    return tuple(factors)


def measure_figure(report: Report, streams: dict[str, SourceStream], scale: Scale) -> dict[Strategy, SimulationResult]:
    """Fig. 5: 16 peers, two streams, random queries; the traffic of each strategy."""
    topology = grid(*GRID)
    queries = random_queries(scale.grid_queries, streams, topology, SEED)
    results = {strategy: simulate(topology, streams, queries, strategy) for strategy in Strategy}
    for strategy, result in results.items():
        report.add(f"traffic, {strategy.value}", result.total, "bytes/s")
        report.add(f"busiest peer, {strategy.value}", 100 * max(result.load.values()), "% of its capacity")
    shared = results[Strategy.SHARING].total
    report.reach("shared query shipping", shared / results[Strategy.QUERY_SHIPPING].total)
    report.reach("shared data shipping", shared / results[Strategy.DATA_SHIPPING].total)
    unwidened = simulate(topology, streams, queries, Strategy.SHARING, widen=False).total
    report.add("traffic, sharing without widening", unwidened, "bytes/s")
    once = _once_per_link(topology, streams, [query.properties.stream for query in queries])
    report.add("traffic, each stream whole and once per link", once, "bytes/s")
    for sources in (2, 3, 6):
        scattered = random_queries(scale.grid_queries, streams, topology, SEED, sources)
        ratio = (
            simulate(topology, streams, scattered, Strategy.SHARING).total
            / simulate(topology, streams, scattered, Strategy.QUERY_SHIPPING).total
        )
        report.add(f"sharing / query shipping, queries about {sources} sources", ratio, "")
    return results


def _once_per_link(topology: Topology, streams: dict[str, SourceStream], used: list[str]) -> float:
    """Data shipping that multicasts: every peer receives each stream once, along a tree."""
    rates = MeasuredRates({name: stream.sample for name, stream in streams.items()})
    whole = (Properties(name, (), frozenset(PHOTONS.names)) for name in set(used))
    return sum(rates.rate(properties).traffic * (len(topology.peers) - 1) for properties in whole)


def measure_planning(report: Report, streams: dict[str, SourceStream], scale: Scale) -> None:
    """The time of a plan in the grid with many standing queries."""
    topology = grid(*GRID)
    network = Network(topology, MeasuredRates({name: stream.sample for name, stream in streams.items()}), CostModel())
    for name, stream in streams.items():
        network.add_stream(name, stream.sample.schema, stream.home)
    queries = random_queries(2 * scale.standing, streams, topology, SEED, sources=3)
    register_all(network, queries[: scale.standing], widen=True, clock=None)
    times: list[float] = []
    for query in queries[scale.standing :][:100]:
        begin = perf_counter()
        plan(network, query.properties, query.peer)
        times.append(perf_counter() - begin)
    report.add(f"planning with {scale.standing:,} standing queries, median", 1e3 * median(times), "ms")
    report.add("the same, slowest", 1e3 * max(times), "ms")
    report.reach("planning", 1e3 * median(times))


def measure_subnets(report: Report, scale: Scale) -> None:
    """Many peers: one flat network, and subnets that are optimized separately."""
    topology = grid(*scale.large_grid)
    peers = topology.peers
    streams = _streams(scale, (peers[len(peers) // 3], peers[2 * len(peers) // 3]))
    queries = random_queries(scale.large_queries, streams, topology, SEED)
    for subnets in (0, max(2, len(peers) // 32)):
        result = simulate(topology, streams, queries, Strategy.SHARING, subnets=subnets, clock=perf_counter)
        name = f"{len(peers):,} peers, {f'{subnets} subnets' if subnets else 'one network'}"
        report.add(f"{name}: traffic", result.total, "bytes/s")
        report.add(f"{name}: planning a query, median", 1e3 * median(result.planning), "ms")
    shipped = simulate(topology, streams, queries, Strategy.QUERY_SHIPPING)
    report.add(f"{len(peers):,} peers, query shipping: traffic", shipped.total, "bytes/s")


def plot(results: dict[Strategy, SimulationResult], report: Report, scale: Scale) -> None:
    """Traffic per link and load per peer; the paper claims that sharing has the least of both."""

    def bars(values: Callable[[SimulationResult], dict[str, float]], label: str, *, log: bool) -> Callable[[Any], None]:
        def paint(axes: Any) -> None:
            names = sorted(values(next(iter(results.values()))))
            for number, (strategy, result) in enumerate(results.items()):
                heights = values(result)
                at = [place + 0.27 * number for place in range(len(names))]
                axes.bar(at, [heights[name] for name in names], 0.27, label=strategy.value)
            axes.set_xticks([place + 0.27 for place in range(len(names))], names, rotation=90, fontsize=6)
            axes.set_ylabel(label)
            if log:
                axes.set_yscale("symlog", linthresh=10)

        return paint

    for suffix, painter, title in (
        ("traffic", bars(lambda result: result.traffic, "bytes/s per link", log=True), "Traffic of each link"),
        ("load", bars(lambda result: result.load, "share of capacity", log=False), "Load of each peer"),
    ):
        claim = "Fig. 5: sharing has the least"
        path = report.plot(f"sharing-{suffix}.svg", title)
        draw(path, f"{title}, 4×4 grid, 2 streams, {scale.grid_queries} queries ({claim})", painter, width=10)
