"""Four servers on loopback: the bytes of each link for the queries of the paper, and the time of a registration."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import Any

import tureen
from benchmarks.plot import draw
from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.pipeline import engine
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.peers import Peer, add_peer
from tureen.pot.tokens import create_token
from tureen.service.server import bind, make_server
from tureen.service.settings import Settings
from tureen.sharing.peer_network import PeerNetwork, PeerReport, ReceivedFlow
from tureen.sharing.photon_sample import photon_sample
from tureen.sharing.sampled_rates import SampledRates
from tureen.sharing.selection_text import shippable
from tureen.sharing.simulation import SourceStream, random_queries
from tureen.sharing.topology import grid
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME, photons

LINKS = (("A", "B"), ("B", "C"), ("B", "D"))
"""The stream lives at A; C and D know B alone."""

PLACES = {"Q1": "C", "Q2": "D", "Q3": "B", "Q4": "A"}
AVERAGES = {"Q3": "C", "Q4": "D"}
USES = {"A-B": 3, "B-C": 1, "B-D": 1}
"""The number of queries that are behind each link."""

GRID, SEED = (4, 4), 7
BATCH, SAMPLE_ROWS, PLANNED = 2_000, 512, 60
PATIENCE = 120.0


@dataclass(frozen=True)
class RunningPeer:
    """A server, and a client of it."""

    url: str
    client: tureen.Client


LinkSizes = Mapping[str, Mapping[str, int]]
"""The bytes of each link, for each way to transport what queries need."""


def measure(root: Path, report: Report, scale: Scale) -> LinkSizes:
    """The bytes of each link with shared flows and with the whole stream; also how long registrations take."""
    _measure_planning(report, scale)
    with _without_spark():
        shared = _measure_sharing(root / "shared", report, scale)
        with _servers(root / "whole") as peers:
            _create_stream(peers)
            for name in "CD":
                peers[name].client.register("SELECT * FROM photons")
            whole = _push(peers, scale.federated_photons)
        _measure_averages(root / "averages", report, scale)
    for link, size in shared.items():
        report.add(f"link {link}, shared flows", size / 1e3, "kB")
        report.add(f"link {link}, the whole stream once", whole[link] / 1e3, "kB")
        report.add(f"link {link}, the whole stream for each query (computed)", USES[link] * whole[link] / 1e3, "kB")
    shipped = {link: USES[link] * size for link, size in whole.items()}
    report.reach("federated", sum(shared.values()) / sum(shipped.values()))
    return {"data shipping": shipped, "the whole stream once": whole, "shared flows": shared}


def plot(sizes: LinkSizes, report: Report) -> None:
    """Draw the bytes of each link."""
    title = "Bytes of each link among four servers"

    def paint(axes: Any) -> None:
        for number, (label, by_link) in enumerate(sizes.items()):
            at = [place + 0.27 * number for place in range(len(by_link))]
            axes.bar(at, [size / 1e3 for size in by_link.values()], 0.27, label=label)
        axes.set_xticks([place + 0.27 for place in range(len(USES))], [link.replace("-", " to ") for link in USES])
        axes.set_ylabel("kB")

    draw(report.plot("federation-bytes.svg", title), title, paint)


def _measure_sharing(root: Path, report: Report, scale: Scale) -> dict[str, int]:
    with _servers(root) as peers:
        _create_stream(peers)
        for name, place in PLACES.items():
            peers[place].client.register(QUERIES[name], name=name, language="wxquery")
        sizes = _push(peers, scale.federated_photons)
        for name, place in PLACES.items():
            answer = peers[place].client.query(name).invoke()
            expected = peers["A"].client.answer_once(QUERIES[name], language="wxquery")
            assert answer.table.equals(expected.table), f"wrong answer for {name}"
            assert answer.complete
        report.add("load of the machine before registrations", os.getloadavg()[0], "")
        quiet = [_register(peers, number, scale.federated_photons) for number in range(scale.federated_queries)]
        report.add("registering a query two links from the home, p50", 1e3 * median(quiet), "ms")
        numbers = range(scale.federated_queries, 2 * scale.federated_queries)
        busy = [_register(peers, number, 0) for number in numbers]
        report.add("the same while the history of others arrives, p50", 1e3 * median(busy), "ms")
        return sizes


def _measure_averages(root: Path, report: Report, scale: Scale) -> None:
    """The bytes of each link for Queries 3 and 4 alone: averages of doubles, and of integers."""
    for column, rows in (("en", "tuples"), ("phc", "partial aggregates")):
        with _servers(root / column) as peers:
            _create_stream(peers)
            # The planner has a sample then.
            peers["A"].client.push("photons", list(photons(SAMPLE_ROWS)))
            for name, place in AVERAGES.items():
                text = QUERIES[name].replace("/en", f"/{column}")
                peers[place].client.register(text, name=name, language="wxquery")
            sizes = _push(peers, scale.federated_photons, SAMPLE_ROWS)
            for name, place in AVERAGES.items():
                query = peers[place].client.query(name)
                expected = peers["A"].client.answer_once(QUERIES[name].replace("/en", f"/{column}"), language="wxquery")
                assert query.invoke().table.equals(expected.table), f"wrong answer for {name}"
                assert [remote["rows_are"] for remote in query.explain()["remote"]] == [rows]
        for link, size in sizes.items():
            report.add(f"link {link}, averages of {column} as {rows}", size / 1e3, "kB")


def _register(peers: dict[str, RunningPeer], number: int, count: int) -> float:
    """The seconds that a registration at C takes, once all links have received so many photons."""
    if count:
        _wait(peers, count)
    low = 40 + number % 60
    text = f"SELECT en FROM photons WHERE `coord/cel/ra` BETWEEN {low} AND {low + 3} AND phc > {number}"
    began = perf_counter()
    peers["C"].client.register(text)
    return perf_counter() - began


def _measure_planning(report: Report, scale: Scale) -> None:
    """The time of a plan in a grid of servers with many standing queries, from what the peers tell on."""
    topology, home = grid(*GRID), "SP05"
    sample = photon_sample(SAMPLE_ROWS, 0)
    rates = SampledRates(sample, 20.0)
    queries = random_queries(
        scale.standing + PLANNED, {"photons": SourceStream(home, sample)}, topology, SEED, sources=3
    )
    flows: dict[str, dict[ReceivedFlow, None]] = {name: {} for name in topology.peers}
    times = []
    for query in queries:
        needed = shippable(sample.schema, query.properties.source)
        reports = [
            PeerReport(name, name == home, () if name == home else tuple(topology.neighbours[name]), tuple(received))
            for name, received in flows.items()
        ]
        began = perf_counter()
        hops = PeerNetwork("photons", sample.schema, reports, rates).hops(needed, query.peer)
        times.append(perf_counter() - began)
        for hop in hops:
            flows[hop.peer][ReceivedFlow(hop.sender, hop.text)] = None
    report.add("flows of the grid", sum(map(len, flows.values())), "")
    report.add("planning a query in the grid from what peers tell, slowest", 1e3 * max(times[-PLANNED:]), "ms")
    report.reach("planning servers", 1e3 * median(times[-PLANNED:]))


def _create_stream(peers: dict[str, RunningPeer]) -> None:
    peers["A"].client.create_stream("photons", SCHEMA, time=TIME, clock="stream", item=ITEM)
    for sender, receiver in LINKS:
        peers[sender].client.share_stream(receiver, "photons")


def _push(peers: dict[str, RunningPeer], count: int, before: int = 0) -> dict[str, int]:
    """Push photons, after some that were pushed before; the bytes that links have received when all have arrived."""
    rows = list(photons(count))
    for start in range(0, count, BATCH):
        peers["A"].client.push("photons", rows[start : start + BATCH])
    _wait(peers, before + count)
    sizes = dict.fromkeys(USES, 0)
    for name, peer in peers.items():
        for link in _links(peer):
            if link["peer"] != name:
                sizes[f"{link['peer']}-{name}"] += link["bytes"]
    return sizes


def _wait(peers: dict[str, RunningPeer], count: int) -> None:
    """Wait until all links have received so many photons."""
    deadline = monotonic() + PATIENCE
    while any(
        link["next_id"] < count or link["state"] != "current" for peer in peers.values() for link in _links(peer)
    ):
        assert monotonic() < deadline, "not all photons have arrived"
        threading.Event().wait(0.05)


def _links(peer: RunningPeer) -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = peer.client.status()["links"]
    return links


@contextmanager
def _without_spark() -> Iterator[None]:
    """Rows are answered from the inbox: what is measured does not need Spark."""
    delay, engine.SPARK_DELAY = engine.SPARK_DELAY, 1e6
    try:
        yield
    finally:
        engine.SPARK_DELAY = delay


@contextmanager
def _servers(root: Path) -> Iterator[dict[str, RunningPeer]]:
    """Four servers in this process, which know each other as `LINKS` says."""
    with ExitStack() as stack:
        peers = {name: stack.enter_context(_server(root / name, name)) for name in PLACES.values()}
        for sender, receiver in (*LINKS, *((right, left) for left, right in LINKS)):
            token = _token(root / sender, receiver, "peer")
            with Catalog(root / receiver) as catalog, catalog.write() as tx:
                add_peer(tx, Peer(sender, peers[sender].url, token))
        yield dict(sorted(peers.items()))


def _token(pot: Path, principal: str, scope: str) -> str:
    with Catalog(pot) as catalog, catalog.write() as tx:
        return create_token(tx, principal, [scope], now=micros_now())[1]


@contextmanager
def _server(pot: Path, name: str) -> Iterator[RunningPeer]:
    settings = Settings(port=0, name=name, log_requests=False)
    with tureen.open(pot) as soup:
        address = bind(settings)
        server, service = make_server(soup, settings)

        def serve() -> None:
            with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
                runner.run(server.serve(sockets=[address]))

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{address.getsockname()[1]}"
        try:
            with tureen.connect(url, _token(pot, "local", "admin")) as client:
                yield RunningPeer(url, client)
        finally:
            service.stop_following()
            server.should_exit = True
            thread.join()
            service.close()
