"""Placement: from which peer a replica receives what a query needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tureen.errors import TureenError, Unreachable
from tureen.federation.flow import link_flow
from tureen.federation.needs import Need
from tureen.federation.neighbour import PeerInfo
from tureen.pot.links import Link


class LinkSource(NamedTuple):
    """A peer, and the flow that it is asked for."""

    peer: str
    flow: str


class Placement(Protocol):
    """Decides where a replica receives its tuples from."""

    def place(self, need: Need, links: Sequence[Link], *, ask: bool = True) -> Link | LinkSource:
        """A link whose replica has what is needed, or the source of a new one; without `ask`, no peer is asked."""
        ...

    def released(self, link: Link) -> None:
        """A link was dropped, because its replica was not in use."""
        ...


class DirectPlacement:
    """Each need is received from the home of its stream, or from a peer that shares it; replicas are shared."""

    def __init__(self, infos: Callable[[], Mapping[str, PeerInfo | TureenError]]) -> None:
        """Ask the peers with a function that returns what each tells, or why it does not answer."""
        self._infos = infos

    def place(self, need: Need, links: Sequence[Link], *, ask: bool = True) -> Link | LinkSource:  # noqa: ARG002
        """A link that covers the need, or a flow from the nearest peer that shares the stream."""
        link = covering_link(need, links)
        if link is not None:
            return link
        infos = self._infos()
        sharing = [
            name
            for name, info in infos.items()
            if isinstance(info, PeerInfo) and any(stream.origin == need.stream.origin for stream in info.streams)
        ]
        if not sharing:
            raise not_shared(need, infos)
        return LinkSource(need.stream.home if need.stream.home in sharing else sharing[0], need.flow)

    def released(self, link: Link) -> None:
        """Nothing to do: senders have no state."""


def covering_link(need: Need, links: Sequence[Link]) -> Link | None:
    """A link whose replica has what is needed; None if there is none."""
    for link in links:
        if link.stream.id == need.stream.id and need.is_covered_by(link_flow(link)):
            return link
    return None


def not_shared(need: Need, infos: Mapping[str, PeerInfo | TureenError]) -> TureenError:
    """The error for a stream that no peer shares at the moment."""
    failed = {name: info for name, info in infos.items() if isinstance(info, TureenError)}
    away = [f"'{name}' does not answer: {error.message}" for name, error in failed.items()]
    return Unreachable(
        f"no peer shares stream '{need.stream.name}' of '{need.stream.home}' at the moment",
        detail="; ".join(away) or None,
        hint="`peer list` shows what peers share",
    )
