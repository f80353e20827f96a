"""`tureen network`: what flows between servers; in simulation, for different ways to distribute queries."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.target import AnySoup, Output, on_soup, reporting
from tureen.errors import TureenError, needs_extra

if TYPE_CHECKING:
    from tureen.sharing.simulation import NetworkQuery, SimulationResult, SourceStream
    from tureen.sharing.topology import Topology

network_commands = typer.Typer(no_args_is_help=True, help="Networks of peers that share streams.")

_GRID = re.compile(r"grid:(\d+)x(\d+)")
_RANDOM = re.compile(r"random:(\d+)")

MAX_PEERS = 10_000


_LINK_COLUMNS = ("stream", "peer", "state", "queries", "kept_for", "rows", "bytes", "bytes_per_second", "flow")


@network_commands.command("show")
@on_soup
def show(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """Show the links over which a server receives streams of others; as JSON, also what its peers receive."""
    network = soup.network()
    if output is Format.JSON:
        show_object(network, output)
    else:
        rows = [{name: link[name] for name in _LINK_COLUMNS} for link in network["links"]]
        show_rows(rows, output, columns=_LINK_COLUMNS)


@network_commands.command("simulate")
@reporting
def simulate(
    topology: Annotated[
        str,
        typer.Option(help='grid:ROWSxCOLUMNS, random:PEERS, or a JSON file {"links": [["a", "b"], …]}.'),
    ] = "grid:4x4",
    streams: Annotated[int, typer.Option(min=1, help="The number of streams of photons.")] = 2,
    queries: Annotated[
        str,
        typer.Option(help='A number of random queries, or a JSON file [{"sql", "peer", "name"?}, …] over photons0, ….'),
    ] = "100",
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="data-shipping, query-shipping or sharing; repeat it for several (default: all)."),
    ] = None,
    photons: Annotated[int, typer.Option(min=1, help="The number of photons of each stream to evaluate.")] = 20_000,
    sources: Annotated[int, typer.Option(min=1, help="How many sources the random queries are about.")] = 1,
    gamma: Annotated[float, typer.Option(min=0.0, max=1.0, help="The weight of traffic against load.")] = 0.9,
    widen: Annotated[bool, typer.Option(help="Whether streams are widened for new queries.")] = True,
    subnets: Annotated[
        int, typer.Option(min=0, help="Optimize this many subnets separately (default: one network).")
    ] = 0,
    seed: Annotated[int, typer.Option(help="The seed of the random topology, photons and queries.")] = 0,
    picture: Annotated[Path | None, typer.Option(help="Write a picture of the network to this SVG file.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Register queries in a simulated network; print the bytes per second of each link and the load of each peer."""
    with needs_extra("engine", "tureen network simulate"):
        # They import numpy and Arrow, which help does not need.
        from tureen.sharing.network_cost import CostModel  # noqa: PLC0415
        from tureen.sharing.network_picture import picture as draw  # noqa: PLC0415
        from tureen.sharing.planning import Strategy  # noqa: PLC0415
        from tureen.sharing.simulation import simulate as run  # noqa: PLC0415

    known = [item.value for item in Strategy]
    for name in strategy or []:
        if name not in known:
            raise TureenError(f"unknown strategy '{name}'", hint=f"strategies are {', '.join(known)}")
    peers = _topology(topology, seed)
    inputs = _streams(streams, photons, peers, seed)
    registered = _queries(queries, inputs, peers, seed, sources)
    costs = CostModel(gamma=gamma)
    results = [
        run(peers, inputs, registered, Strategy(name), costs, widen=widen, subnets=subnets, clock=perf_counter)
        for name in strategy or known
    ]
    if picture is not None:
        homes = {name: stream.home for name, stream in inputs.items()}
        try:
            picture.write_text(draw(peers, results, homes), encoding="utf-8")
        except OSError as error:
            raise TureenError(f"cannot write the picture to '{picture}'", detail=str(error)) from error
    _show(results, output)


def _topology(text: str, seed: int) -> Topology:
    from tureen.sharing.topology import grid, parse_topology, random_topology  # noqa: PLC0415

    if match := _GRID.fullmatch(text):
        rows, columns = map(int, match.groups())
        _check_size(rows * columns)
        return grid(rows, columns)
    if match := _RANDOM.fullmatch(text):
        _check_size(int(match.group(1)))
        return random_topology(int(match.group(1)), seed=seed)
    path = Path(text)
    if not path.is_file():
        raise TureenError(
            f"unknown topology '{text}'", hint="write grid:4x4, random:50, or the name of a JSON file with links"
        )
    return parse_topology(_text_of(path))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TureenError(f"cannot read '{path}'", detail=str(error)) from error


def _check_size(peers: int) -> None:
    if not 1 <= peers <= MAX_PEERS:
        raise TureenError(f"a network must have 1 to {MAX_PEERS:,} peers, got {peers:,}")


def _streams(count: int, photons: int, topology: Topology, seed: int) -> dict[str, SourceStream]:
    from tureen.sharing.photon_sample import photon_sample  # noqa: PLC0415
    from tureen.sharing.simulation import SourceStream  # noqa: PLC0415

    homes = [topology.peers[len(topology.peers) * (number + 1) // (count + 1)] for number in range(count)]
    return {
        f"photons{number}": SourceStream(home, photon_sample(photons, seed + number))
        for number, home in enumerate(homes)
    }


def _queries(
    text: str, streams: dict[str, SourceStream], topology: Topology, seed: int, sources: int
) -> list[NetworkQuery]:
    from tureen.sharing.simulation import bind, random_queries  # noqa: PLC0415

    if text.isdecimal():
        return random_queries(int(text), streams, topology, seed, sources)
    path = Path(text)
    if not path.is_file():
        raise TureenError(f"queries must be a number or a JSON file, got '{text}'")
    try:
        items: list[dict[str, Any]] = json.loads(_text_of(path))
        listed = [(str(item.get("name", f"q{number}")), item["sql"], item["peer"]) for number, item in enumerate(items)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TureenError(
            f"cannot read the queries: {type(error).__name__}: {error}", hint='write [{"sql": "…", "peer": "…"}, …]'
        ) from None
    names = [name for name, _, _ in listed]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise TureenError(f"duplicate query '{repeated}'")
    for name, _, peer in listed:
        if peer not in topology.neighbours:
            raise TureenError(f"query '{name}': there is no peer '{peer}'")
    schemas = {name: stream.sample.schema for name, stream in streams.items()}
    return [bind(name, sql, peer, schemas) for name, sql, peer in listed]


def _show(results: list[SimulationResult], output: Format) -> None:
    if output is Format.JSON:
        show_object({"results": [result.as_json() for result in results]}, output)
        return
    by_name = {result.strategy.value: result for result in results}
    if output is Format.CSV:
        traffic = [
            {"kind": "link", "name": link, **{name: result.traffic[link] for name, result in by_name.items()}}
            for link in results[0].traffic
        ]
        load = [
            {"kind": "peer", "name": peer, **{name: result.load[peer] for name, result in by_name.items()}}
            for peer in results[0].load
        ]
        show_rows([*traffic, *load], output)
        return
    summary = [
        {
            "strategy": result.strategy.value,
            "bytes per second": round(result.total),
            "busiest link": round(max(result.traffic.values(), default=0.0)),
            "busiest peer": f"{max(result.load.values()):.2%}",
            "streams": result.flows,
        }
        for result in results
    ]
    show_rows(summary, output)
    links = [
        {"link": link, **{name: round(result.traffic[link]) for name, result in by_name.items()}}
        for link in results[0].traffic
    ]
    loads = [
        {"peer": peer, **{name: f"{result.load[peer]:.2%}" for name, result in by_name.items()}}
        for peer in results[0].load
    ]
    show_rows(links, output, columns=["link", *by_name])
    show_rows(loads, output)
