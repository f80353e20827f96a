"""Streams by name, read again only when the catalog changed."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.arguments import check_text
from tureen.errors import UnknownStream
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.streams import Stream, find_stream, stream_by_id
from tureen.schema import Schema, name_key


@dataclass(frozen=True)
class Named:
    """A stream, and the last commit when it was looked up."""

    stream: Stream
    seq: int


class NamedStreams:
    """What a push and a registration need to know of a stream, mostly without asking the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        """Look streams up in that catalog."""
        self._catalog = catalog
        self._token = -1
        self._kept: dict[str, Named] = {}
        self._last_known: dict[str, Stream] = {}

    def find(self, name: str) -> Named:
        """The stream of that name."""
        check_text(name, "a stream's name")
        token = self._catalog.token()
        if token != self._token:
            # In this order: another thread that finds the new token must not find what was kept under the old one.
            self._kept = {}
            self._token = token
        kept = self._kept
        named = kept.get(name_key(name))
        if named is None:
            with self._catalog.read() as tx:
                named = Named(find_stream(tx, name), current_seq(tx))
            kept[name_key(name)] = named
        return named

    def last_known(self, name: str) -> Stream:
        """The stream that had that name when it was last looked at; it may have been dropped since."""
        stream = self._last_known.get(name_key(name))
        if stream is None:
            stream = self._last_known[name_key(name)] = self.find(name).stream
        return stream

    def forget(self) -> None:
        """Look streams up again, instead of using those last known."""
        self._last_known = {}

    def describe_id(self, stream_id: int) -> tuple[str, Schema]:
        """The same of the stream of an id."""
        with self._catalog.read() as tx:
            stream = stream_by_id(tx, stream_id)
        if stream is None:
            raise UnknownStream("the stream was dropped")
        return stream.name, stream.schema

    def describe(self, name: str) -> tuple[str, Schema]:
        """The stream's name as it was made, and its schema."""
        stream = self.find(name).stream
        return stream.name, stream.schema
