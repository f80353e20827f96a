"""A cache of streams by name, which is invalidated when the catalog changes."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.arguments import check_text
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.relations import StoredRelation, find_relation
from tureen.pot.streams import Stream, find_stream
from tureen.schema import name_key


@dataclass(frozen=True)
class CachedStream:
    """A stream, and the last commit at the time it was looked up."""

    stream: Stream
    seq: int


class StreamCache:
    """Streams for pushes and registrations, mostly without a query of the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        """Look up streams in that catalog."""
        self._catalog = catalog
        self._token = -1
        self._entries: dict[str, CachedStream] = {}
        self._last_known: dict[str, StoredRelation] = {}

    def find(self, name: str) -> CachedStream:
        """The stream of that name."""
        check_text(name, "a stream's name")
        token = self._catalog.token()
        if token != self._token:
            # In this order: another thread that sees the new token must not see the entries of the old one.
            self._entries = {}
            self._token = token
        entries = self._entries
        entry = entries.get(name_key(name))
        if entry is None:
            with self._catalog.read() as tx:
                entry = CachedStream(find_stream(tx, name), current_seq(tx))
            entries[name_key(name)] = entry
        return entry

    def last_known(self, name: str) -> StoredRelation:
        """The stream or table that had that name at the last lookup; it may have been dropped since."""
        relation = self._last_known.get(name_key(name))
        if relation is None:
            with self._catalog.read() as tx:
                relation = self._last_known[name_key(name)] = find_relation(tx, name)
        return relation

    def forget(self) -> None:
        """Forget the relations that `last_known` returns."""
        self._last_known = {}
