"""Narrowing: a flow that was widened for a query that is gone is reduced to what the others need.

The selection of a link is replaced by a narrower one, and its replica continues after the tuples that it has: nothing
is missing or sent again. The tuples that it has beyond the selection stay, so whoever reads a replica selects. What
peers hold narrows in turn, link by link towards the home.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tureen.errors import TureenError
from tureen.federation.federation import Federation
from tureen.federation.needs import need_of
from tureen.federation.network_placement import NetworkPlacement, read_link
from tureen.pot.catalog import Catalog
from tureen.pot.held_flows import list_held_flows
from tureen.pot.links import Link, list_links, replica_readers
from tureen.pot.transaction import Transaction
from tureen.query import Query
from tureen.sharing.covering import covers
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import parse_selection, selection_text, shippable
from tureen.sharing.widening import widened

log = logging.getLogger("tureen")

MOST_READERS = 256
"""A flow with more inputs of queries is not narrowed: one that is left would hardly change it."""

WORTHWHILE = 0.8
"""A flow is narrowed if at most this share of its traffic remains."""


class LinkUse(NamedTuple):
    """A flow as it is received, and who reads its replica."""

    peer: str
    flow: str
    readers: frozenset[tuple[str, int]]
    """Handles of queries, and the numbers of their inputs."""
    held: frozenset[str]
    """Flows that are kept for peers."""
    local: frozenset[tuple[int, str]]
    """Links of this server to itself that are computed from it, with their flows."""

    @property
    def is_copied(self) -> bool:
        """Whether all that reads the replica is another one that has the same tuples."""
        return not self.readers and not self.held and [flow for _, flow in self.local] == [self.flow]


class _Narrower(NamedTuple):
    """A narrower selection, and when it was first enough."""

    needed: Properties
    since: int


class Narrowing:
    """Narrows the flows of one server that have had more than is needed for some time."""

    def __init__(
        self,
        catalog: Catalog,
        federation: Federation,
        placement: NetworkPlacement,
        query_of: Callable[[str], Query],
        clock: Callable[[], int],
    ) -> None:
        """Narrow the links of that federation; `query_of` returns a registered query."""
        self._catalog, self._federation, self._placement = catalog, federation, placement
        self._query_of, self._clock = query_of, clock
        self._uses: dict[int, LinkUse] = {}
        self._narrower: dict[int, _Narrower] = {}

    def narrow(self) -> None:
        """Narrow the flows that have been too wide for long enough; a change of its use restarts the time of a flow."""
        with self._catalog.read() as tx:
            by_id, uses = {link.id: link for link in list_links(tx)}, self._current_uses(tx)
        links = [link for link in by_id.values() if link.peer != self._federation.name]
        for link in links:
            use = uses[link.id]
            if use.is_copied:
                # The other replica takes the place of this one, which nobody uses then.
                ((copy, _),) = use.local
                self._federation.change_source(by_id[copy], link.peer)
                continue
            if self._uses.get(link.id) != use:
                self._narrower.pop(link.id, None)
                needed = self._needed(link, use)
                if needed is not None:
                    self._narrower[link.id] = _Narrower(needed, self._clock())
            narrower = self._narrower.get(link.id)
            patience = round(self._federation.settings.narrow_seconds * 1_000_000)
            if narrower is not None and self._clock() - narrower.since >= patience:
                self._change(link, use, self._narrower.pop(link.id).needed)
        self._uses = {link.id: uses[link.id] for link in links}
        self._narrower = {number: entry for number, entry in self._narrower.items() if number in self._uses}

    def _current_uses(self, tx: Transaction) -> dict[int, LinkUse]:
        links, readers = list_links(tx), replica_readers(tx)
        held: dict[int, set[str]] = {}
        for flow in list_held_flows(tx):
            held.setdefault(flow.replica, set()).add(flow.flow)
        local: dict[int, set[tuple[int, str]]] = {}
        for link in links:
            source = self._placement.feeding(link, links)
            if source is not None and source.id != link.id:
                local.setdefault(source.id, set()).add((link.id, link.flow))
        return {
            link.id: LinkUse(
                link.peer,
                link.flow,
                frozenset(readers.get(link.id, ())),
                frozenset(held.get(link.id, ())),
                frozenset(local.get(link.id, ())),
            )
            for link in links
        }

    def _needed(self, link: Link, use: LinkUse) -> Properties | None:
        """What all that read a replica need together; None if that is all that the link receives, or not known."""
        if len(use.readers) > MOST_READERS or not (use.readers or use.held or use.local):
            return None
        stream, schema, received = link.stream, link.stream.visible, read_link(link)
        if received.aggregation is not None:
            return None
        try:
            needs = [need_of(stream, self._query_of(handle), number).properties for handle, number in use.readers]
            flows = use.held | {flow for _, flow in use.local}
            needs += [parse_selection(flow, stream.name, schema).source for flow in flows]
        except TureenError:
            return None
        together = _union(link, (shippable(schema, need) for need in needs))
        if together is None or covers(schema, together, received) or not covers(schema, received, together):
            return None
        return together

    def _change(self, link: Link, use: LinkUse, needed: Properties) -> None:
        """Ask the peer for less, if nobody began to need more meanwhile."""
        text = selection_text(link.stream.visible, needed)
        try:
            if not self._placement.is_worthwhile(link, needed, WORTHWHILE):
                return
            self._placement.ask_to_keep(link, text)
            changed = self._federation.change_flow(link, text, lambda tx: self._current_uses(tx).get(link.id) == use)
        except TureenError as error:
            log.info("a flow of stream '%s' is not narrowed: %s", link.stream.name, error)
            changed = False
        if changed:
            log.info("stream '%s' is received from '%s' as %s", link.stream.name, link.peer, text)
        else:
            # It is tried again when as much time has passed.
            self._narrower[link.id] = _Narrower(needed, self._clock())


def _union(link: Link, needs: Iterable[Properties]) -> Properties | None:
    """A selection that has what all need; None if there is none."""
    schema, together = link.stream.visible, None
    for need in needs:
        together = need if together is None else widened(schema, together, need)
        if together is None:
            return None
    return None if together is None else shippable(schema, together)
