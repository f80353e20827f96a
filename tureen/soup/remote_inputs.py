"""Inputs of queries over streams that live at other servers: each reads a replica that has what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tureen.errors import UnknownStream
from tureen.pot.registered import NewInput, RegisteredInput
from tureen.pot.relations import Relations, StoredRelation
from tureen.pot.streams import Stream
from tureen.query import Query


class RemoteStreams(Protocol):
    """What receives streams of other servers; see `tureen.federation.federation.Federation`."""

    def find_remote(self, name: str) -> Stream | None:
        """Add the stream that a peer shares under that name to the catalog; None if no peer shares one."""
        ...

    def replica_for(self, stream: Stream, query: Query, number: int, *, aggregates: bool = False) -> NewInput:
        """A replica with what the leaf of that number of a query needs, claimed until `release`, and its clause.

        With `aggregates`, it may have partial aggregates instead of tuples.
        """
        ...

    def whole_replica(self, stream: Stream) -> int:
        """A replica with all tuples of a stream, claimed until `release`."""
        ...

    def release(self, replica: int) -> None:
        """The registration that claimed a replica is over."""
        ...


Find = Callable[[str], StoredRelation]


def finding_remote(find: Find, remote: RemoteStreams | None) -> Find:
    """A look-up that also finds streams that peers share."""

    def find_anywhere(name: str) -> StoredRelation:
        try:
            return find(name)
        except UnknownStream:
            if remote is None or remote.find_remote(name) is None:
                raise
        return find(name)

    return find_anywhere


@contextmanager
def claimed_inputs(
    relations: Relations,
    query: Query,
    remote: RemoteStreams | None,
    *,
    whole: bool = False,
    aggregates: bool = False,
) -> Iterator[tuple[NewInput, ...]]:
    """The inputs of a query to register, over replicas where streams live at other servers.

    The replicas are kept until the end of the block, by which the query is registered. With `whole`, they have all
    tuples of their streams: the constants of the query are not known. With `aggregates`, they may have partial
    aggregates, if the answer can be computed from them.
    """
    claimed: list[int] = []
    inputs: list[NewInput] = []
    try:
        for number, leaf in enumerate(query.leaves):
            stream = relations.find(leaf.relation)
            if remote is None or not isinstance(stream, Stream) or stream.home is None:
                inputs.append(relations.new_input(leaf))
                continue
            if whole:
                new = NewInput(remote.whole_replica(stream), leaf.clause)
            else:
                new = remote.replica_for(stream, query, number, aggregates=aggregates)
            assert new.stream_id is not None
            claimed.append(new.stream_id)
            inputs.append(new)
        yield tuple(inputs)
    finally:
        for replica in claimed:
            assert remote is not None
            remote.release(replica)


@contextmanager
def claimed_template_inputs(
    relations: Relations, query: Query, remote: RemoteStreams | None
) -> Iterator[tuple[RegisteredInput, ...]]:
    """The inputs of a template's queries."""
    with claimed_inputs(relations, query, remote, whole=True) as inputs:
        yield tuple(
            RegisteredInput(leaf.kind, new.stream_id, new.table_id)
            for leaf, new in zip(query.leaves, inputs, strict=True)
        )
