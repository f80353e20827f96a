"""The state of streams that an answer is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tureen.position import Mark, Position
from tureen.pot.catalog import Catalog
from tureen.pot.kept_joins import KeptJoin
from tureen.pot.punctuation_places import StoredPlaces, taken_places
from tureen.pot.reserved_ids import Reservation
from tureen.pot.runs import Run
from tureen.pot.streams import Stream
from tureen.pot.tables import Dimension
from tureen.results.snapshot.pending import PendingRows
from tureen.results.snapshot.segment import Segment
from tureen.stems.join_run import OpenJoinRun


@dataclass(frozen=True)
class StreamState:
    """A stream at one moment: the runs of a commit and the pending rows of the inbox, in order of tuple id."""

    seq: int
    stream: Stream
    """With the pending rows: `next_id` and `last_time` include them."""
    segments: list[Segment]
    runs: list[Run]
    pending: PendingRows
    reserved: tuple[Reservation, ...] = ()
    pushes: int = 0
    """The count of pushes up to which pending rows are included."""
    committed_keys: tuple[tuple[int, ...], ...] = ()
    """The keys of the segments that are not pending."""

    @cached_property
    def position(self) -> str:
        """The position of the answers that are computed from it."""
        return self.position_at(Mark(self.stream.next_id))

    def at_pushes(self, pushes: int) -> StreamState:
        """The same as of a later count of pushes, none of which was to this stream; `replace` takes longer."""
        return StreamState(
            self.seq, self.stream, self.segments, self.runs, self.pending, self.reserved, pushes, self.committed_keys
        )

    @property
    def punctuation_end(self) -> int:
        """The number of the next punctuation of the stream."""
        return self.stream.punctuation_count + self.pending.punctuation_count

    def punctuations(self, catalog: Catalog, number: int) -> StoredPlaces:
        """The punctuations of the stream from a number on, in order: those in the catalog, then the pending ones.

        Older ones than those that the catalog has are in the closed set only.
        """
        count = self.stream.punctuation_count
        pending = StoredPlaces(max(count, number), self.pending.punctuations(number - count))
        if number >= count:
            return pending
        with catalog.read() as tx:
            taken = taken_places(tx, self.stream.id, number)
        known = taken.places[: max(0, count - taken.first)]
        return StoredPlaces(taken.first, known + pending.places) if known else pending

    def position_at(self, mark: Mark) -> str:
        """The position of a mark in this stream."""
        return str(Position(self.seq, {self.stream.id: mark}, self.pushes))


class JoinState(NamedTuple):
    """A kept join and its mapped runs."""

    join: KeptJoin
    runs: list[OpenJoinRun]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Streams, tables and kept joins as of one commit and one count of pushes: what an answer is computed from."""

    seq: int
    pushes: int
    streams: dict[int, StreamState]
    tables: dict[str, Dimension]
    joins: Mapping[int, JoinState] = field(default_factory=dict)
    troubles: Mapping[int, str] = field(default_factory=dict)
    """Why tuples that live at other servers may be missing, by stream; as of before anything was read."""

    @cached_property
    def position(self) -> str:
        """The position of the answers that are computed from it."""
        return str(self.position_at(None))

    def feed_end(self, now: int) -> Position:
        """The position of a feed that has read everything, at the wall clock: also the punctuations."""
        marks = {
            stream_id: Mark(state.stream.next_id, punctuations=state.punctuation_end or None)
            for stream_id, state in self.streams.items()
        }
        return Position(self.seq, marks, self.pushes, now)

    def position_at(self, now: int | None) -> Position:
        """The position of an answer whose NOW it must tell."""
        marks = {stream_id: Mark(state.stream.next_id) for stream_id, state in self.streams.items()}
        return Position(self.seq, marks, self.pushes, now)


SnapshotKey = tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]
"""The ids of the streams, tables and joins of a snapshot."""


class RecentSnapshots:
    """The snapshots of one commit as of the last count of pushes, so that invocations without news share one."""

    def __init__(self) -> None:
        """Have none."""
        self._pushes = -1
        self._snapshots: dict[SnapshotKey, Snapshot] = {}

    def find(self, key: SnapshotKey, pushes: int) -> Snapshot | None:
        """The snapshot of some relations as of a count of pushes."""
        known = self._snapshots.get(key)
        return known if known is not None and known.pushes == pushes else None

    def add(self, key: SnapshotKey, snapshot: Snapshot) -> None:
        """Share a snapshot; those of earlier pushes are dropped."""
        if snapshot.pushes != self._pushes:
            self._pushes, self._snapshots = snapshot.pushes, {}
        self._snapshots[key] = snapshot
