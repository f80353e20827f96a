"""A picture of a network as SVG: links as wide as their traffic, peers as dark as their load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from tureen.sharing.simulation import SimulationResult
from tureen.sharing.topology import Topology

_SIZE = 640.0
_MARGIN = 48.0
_WIDEST = 14.0


def picture(topology: Topology, results: list[SimulationResult], homes: Mapping[str, str]) -> str:
    """The results side by side, on the same scale; `homes` are the peers of the streams."""
    places = topology.places or _circle(topology.peers)
    most = max((amount for result in results for amount in result.traffic.values()), default=0.0) or 1.0
    heaviest = max((share for result in results for share in result.load.values()), default=0.0) or 1.0
    panels = [
        _panel(topology, result, _scaled(places), most, heaviest, homes, number * _SIZE)
        for number, result in enumerate(results)
    ]
    width, height = _SIZE * max(len(results), 1), _SIZE + 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def _panel(
    topology: Topology,
    result: SimulationResult,
    places: Mapping[str, tuple[float, float]],
    most: float,
    heaviest: float,
    homes: Mapping[str, str],
    left: float,
) -> str:
    parts = [
        f'<g transform="translate({left:g} 0)">',
        f'<text x="{_SIZE / 2:g}" y="24" text-anchor="middle" font-size="16">'
        f"{escape(result.strategy.value)}: {result.total:,.0f} bytes/s</text>",
    ]
    for link in sorted(topology.links):
        (x1, y1), (x2, y2) = places[link[0]], places[link[1]]
        amount = result.traffic["-".join(link)]
        width = 0.5 + _WIDEST * math.sqrt(amount / most)
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="#4477aa" stroke-width="{width:.2f}">'
            f"<title>{escape(link[0])}–{escape(link[1])}: {amount:,.0f} bytes/s</title></line>"
        )
    for peer in topology.peers:
        x, y = places[peer]
        share = result.load[peer]
        lightness = 96 - 56 * share / heaviest
        names = [stream for stream, home in homes.items() if home == peer]
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{16 if len(topology.peers) <= 64 else 5}" '
            f'fill="hsl(20 80% {lightness:.0f}%)" stroke="{"#aa3333" if names else "#333333"}" '
            f'stroke-width="{3 if names else 1}"><title>{escape(peer)}: load {share:.2%}</title></circle>'
        )
        if len(topology.peers) <= 64:
            label = escape(peer if not names else f"{peer} ({', '.join(names)})")
            parts.append(f'<text x="{x:.1f}" y="{y + 30:.1f}" text-anchor="middle">{label}</text>')
    return "\n".join([*parts, "</g>"])


def _circle(peers: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    angles = [2 * math.pi * number / len(peers) for number in range(len(peers))]
    return {peer: (math.cos(angle), math.sin(angle)) for peer, angle in zip(peers, angles, strict=True)}


def _scaled(places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The places within the panel."""
    lows = [min(place[axis] for place in places.values()) for axis in (0, 1)]
    spans = [max(place[axis] for place in places.values()) - lows[axis] or 1.0 for axis in (0, 1)]
    room = _SIZE - 2 * _MARGIN
    return {
        peer: (
            _MARGIN + room * (place[0] - lows[0]) / spans[0],
            _MARGIN + 24 + room * (place[1] - lows[1]) / spans[1],
        )
        for peer, place in places.items()
    }
