"""The cost of an evaluation plan: network traffic and load of peers (Data Stream Sharing, §3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tureen.sharing.properties import Properties
from tureen.sharing.topology import Link

_STEEPEST = 50.0
"""The largest exponent of a penalty, beyond which all plans are equally bad."""


class Rate(NamedTuple):
    """How much a stream transports."""

    frequency: float
    """Rows per second."""
    size: float
    """Bytes per row."""

    @property
    def traffic(self) -> float:
        """Bytes per second."""
        return self.frequency * self.size


class StreamRates(Protocol):
    """Measures or estimates how much the stream with given properties transports."""

    def rate(self, properties: Properties) -> Rate:
        """The rate of a stream."""
        ...


@dataclass(frozen=True)
class CostModel:
    """The weights of the cost function, and what links and peers can do."""

    gamma: float = 0.9
    """The weight of traffic against load, from 0 to 1."""
    bandwidth: float = 1_000_000.0
    """Bytes per second of a link."""
    capacity: float = 100_000.0
    """Rows per second that a peer can pass to one operator of load 1."""
    selection_load: float = 1.0
    projection_load: float = 0.25
    aggregation_load: float = 1.5

    def operator_load(self, source: Properties, result: Properties) -> float:
        """The load, per row of the source, of the operators that compute a stream from another."""
        load = 0.0
        if source.clause != result.clause:
            load += self.selection_load
        if source.aggregation != result.aggregation:
            load += self.aggregation_load
        elif source.columns != result.columns:
            load += self.projection_load
        return load

    def cost(self, traffic: Mapping[Link, float], load: Mapping[str, float], usage: Usage) -> float:
        """The cost C of a plan that adds traffic to links and load to peers."""
        links = sum(
            penalized(extra / self.bandwidth, 1 - usage.traffic.get(link, 0.0) / self.bandwidth)
            for link, extra in traffic.items()
        )
        peers = sum(
            penalized(extra / self.capacity, 1 - usage.load.get(peer, 0.0) / self.capacity)
            for peer, extra in load.items()
        )
        return self.gamma * links + (1 - self.gamma) * peers


def penalized(used: float, available: float) -> float:
    """The relative use of a link or peer, with an exponential penalty for more than is available.

    >>> penalized(0.25, 0.5), round(penalized(0.75, 0.5), 3)
    (0.25, 1.071)
    """
    excess = used - available
    return used if excess <= 0 else used + excess * math.exp(min(excess, _STEEPEST))


class Usage:
    """Bytes per second on each link, and load of each peer."""

    def __init__(self) -> None:
        self.traffic: dict[Link, float] = {}
        self.load: dict[str, float] = {}

    def add_traffic(self, link: Link, amount: float) -> None:
        """Add bytes per second, or remove them if negative."""
        self.traffic[link] = self.traffic.get(link, 0.0) + amount

    def add_load(self, peer: str, amount: float) -> None:
        """Add load, or remove it if negative."""
        self.load[peer] = self.load.get(peer, 0.0) + amount
