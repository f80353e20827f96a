"""Networks of peers: who is connected with whom, and the shortest routes."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tureen.errors import TureenError

Link = tuple[str, str]
"""Two connected peers, in alphabetical order."""

Route = tuple[str, ...]
"""The peers from a first to a last one, each connected with the next."""


def link_of(one_end: str, other_end: str) -> Link:
    """The link between two peers."""
    return (one_end, other_end) if one_end < other_end else (other_end, one_end)


def links_of(route: Route) -> list[Link]:
    """The links of a route.

    >>> links_of(("b", "a", "c"))
    [('a', 'b'), ('a', 'c')]
    """
    return [link_of(*pair) for pair in pairwise(route)]


@dataclass(frozen=True)
class Topology:
    """Peers and links; every peer can be reached from every other one."""

    peers: tuple[str, ...]
    links: frozenset[Link]
    places: Mapping[str, tuple[float, float]] | None = None
    """Where to draw each peer, if known."""
    closed: frozenset[tuple[str, str]] = frozenset()
    """Directions of links in which nothing may be sent, as pairs of sender and receiver."""

    @cached_property
    def neighbours(self) -> dict[str, list[str]]:
        """The peers that each peer can send to, sorted."""
        neighbours: dict[str, list[str]] = {peer: [] for peer in self.peers}
        for left, right in sorted(self.links):
            for pair in ((left, right), (right, left)):
                if pair not in self.closed:
                    neighbours[pair[0]].append(pair[1])
        return neighbours

    @cached_property
    def _predecessors(self) -> dict[str, dict[str, str]]:
        return {}

    def reaches(self, start: str, end: str) -> bool:
        """Whether there is a route between two peers."""
        return end in self._before(start)

    def _before(self, start: str) -> dict[str, str]:
        if start not in self._predecessors:
            self._predecessors[start] = self._search(start)
        return self._predecessors[start]

    def route(self, start: str, end: str) -> Route:
        """A shortest route between two peers; the same for the same peers."""
        before = self._before(start)
        route = [end]
        while route[-1] != start:
            route.append(before[route[-1]])
        return tuple(reversed(route))

    def distances(self, start: str) -> dict[str, int]:
        """The number of links of a shortest route to each peer."""
        distances = {start: 0}
        for peer, before in self._search(start).items():
            if peer != start:
                distances[peer] = distances[before] + 1
        return distances

    def _search(self, start: str) -> dict[str, str]:
        """Breadth-first: for each peer the one before it on the route from `start`."""
        before = {start: start}
        queue = deque([start])
        while queue:
            peer = queue.popleft()
            for neighbour in self.neighbours[peer]:
                if neighbour not in before:
                    before[neighbour] = peer
                    queue.append(neighbour)
        return before

    def checked(self) -> Topology:
        """This topology; raises if a link names an unknown peer or a peer cannot be reached."""
        known = set(self.peers)
        if not known:
            raise TureenError("a network needs at least one peer")
        for link in self.links:
            for peer in link:
                if peer not in known:
                    raise TureenError(f"link {link[0]}-{link[1]}: there is no peer '{peer}'")
        missing = known - self._search(self.peers[0]).keys()
        if missing:
            raise TureenError(
                f"peer '{min(missing)}' cannot be reached from '{self.peers[0]}'", hint="add a link between them"
            )
        return self


def grid(rows: int, columns: int) -> Topology:
    """Peers at the crossings of a grid, each connected with its neighbours.

    >>> len(grid(4, 4).peers), len(grid(4, 4).links)
    (16, 24)
    """
    width = len(str(rows * columns - 1))
    names = [[f"SP{row * columns + column:0{width}}" for column in range(columns)] for row in range(rows)]
    across = (link_of(line[column], line[column + 1]) for line in names for column in range(columns - 1))
    down = (link_of(names[row][column], names[row + 1][column]) for row in range(rows - 1) for column in range(columns))
    places = {names[row][column]: (float(column), float(row)) for row in range(rows) for column in range(columns)}
    return Topology(tuple(name for line in names for name in line), frozenset((*across, *down)), places)


def random_topology(count: int, degree: float = 3.0, seed: int = 0) -> Topology:
    """A random tree with random links added, until a peer has `degree` links on average."""
    generator = random.Random(seed)
    width = len(str(max(count - 1, 0)))
    peers = tuple(f"SP{number:0{width}}" for number in range(count))
    links = {link_of(peers[number], peers[generator.randrange(number)]) for number in range(1, count)}
    most = count * (count - 1) // 2
    while len(links) < min(most, int(count * degree / 2)):
        links.add(link_of(*generator.sample(peers, 2)))
    return Topology(peers, frozenset(links))


def parse_topology(text: str) -> Topology:
    """Read a topology from JSON: `{"links": [["a", "b"], …], "peers": [names of peers without links]}`."""
    try:
        content = json.loads(text)
        links = frozenset(link_of(*map(str, pair)) for pair in content["links"])
        peers = [str(peer) for peer in content.get("peers", [])]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TureenError(
            f"cannot read the topology: {type(error).__name__}: {error}",
            hint='write {"links": [["a", "b"], ["b", "c"]]}',
        ) from None
    return Topology(tuple(_distinct([*peers, *(peer for link in sorted(links) for peer in link)])), links).checked()


def _distinct(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))
