"""Followed queries: new tuples are matched once with the clauses of all of them, to find who has changes.

Most pushes concern few of the followed queries. So a follower does not select from every push by itself. The new tuples
of a stream are matched with all followed clauses at once, row by row as CACQ's grouped filters do (§2.2), and only the
followers of the clauses that some tuple satisfies read their changes. Matching uses the factors of a clause that
compare a column with constants. The others are left out, so a follower may read its changes and find none, but never
misses one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from tureen.errors import DamagedFile, UnknownStream
from tureen.matching import CellReader
from tureen.matching.clause_set import ClauseSet, simple_factors
from tureen.position import Mark, Position
from tureen.predicate import Clause
from tureen.results.snapshot.stream_state import StreamState
from tureen.results.snapshot.view import View
from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, Block

LEAST_SHARED = 4
"""Fewer clauses are not matched together: each follower selects from the new tuples by itself."""

NEVER = (1 << 63) - 1
"""An id after all tuples."""

KEPT_MATCHES = 256
"""How many of the last intervals of tuples of a stream are remembered, with all clauses that they match."""

KEPT_INTERVALS = 32
"""How many of the last intervals of tuples with a match are remembered for a clause."""


class TupleIds(NamedTuple):
    """Tuple ids from `first` to before `end`."""

    first: int
    end: int


@dataclass(eq=False)
class FollowedClause:
    """A clause, and where the tuples are that may satisfy it."""

    number: int
    factors: Clause
    """Its comparisons of a column with constants."""
    known_from: int
    """All tuples from this id on were matched; of these, only those in `intervals` can satisfy the clause."""
    intervals: deque[TupleIds] = field(default_factory=deque)
    followers: int = 0

    def note_match(self, interval: TupleIds) -> None:
        """Remember that a tuple of the interval satisfies the factors; the oldest interval may be forgotten."""
        self.intervals.append(interval)
        if len(self.intervals) > KEPT_INTERVALS:
            self.known_from = self.intervals.popleft().end

    def first_match(self, first_id: int, end: int) -> int:
        """The first id from `first_id` on whose tuple may satisfy the clause; if there is none, `end`."""
        if first_id < self.known_from:
            return first_id
        first = next((interval.first for interval in self.intervals if interval.end > first_id), end)
        return max(first_id, first)


class FollowedStream:
    """The followed clauses of one stream."""

    def __init__(self, state: StreamState) -> None:
        """Match the tuples that arrive from now on."""
        self.state = state
        self._clauses: dict[Clause, FollowedClause] = {}
        self._by_number: dict[int, FollowedClause] = {}
        self._set = ClauseSet(state.stream.schema)
        self._matches: deque[tuple[TupleIds, set[FollowedClause]]] = deque()
        self._known_from = state.stream.next_id
        """All tuples from this id on are in `_matches`."""

    def __len__(self) -> int:
        """The number of different clauses."""
        return len(self._clauses)

    def add(self, clause: Clause) -> FollowedClause:
        """Match new tuples with a clause too, until its last follower is removed."""
        factors = simple_factors(clause)
        followed = self._clauses.get(factors)
        if followed is None:
            followed = FollowedClause(self._set.add(factors), factors, self.state.stream.next_id)
            self._clauses[factors] = self._by_number[followed.number] = followed
        followed.followers += 1
        return followed

    def remove(self, followed: FollowedClause) -> None:
        """Remove a follower of a clause."""
        followed.followers -= 1
        if not followed.followers:
            del self._clauses[followed.factors], self._by_number[followed.number]
            self._set.remove(followed.number)

    def advance(self, state: StreamState) -> set[FollowedClause]:
        """Match the tuples that were added since the last call; returns the clauses that they may satisfy."""
        interval = TupleIds(self.state.stream.next_id, state.stream.next_id)
        matched: set[FollowedClause] = set()
        if interval.end > interval.first and self._clauses:
            for block in _blocks(state, interval):
                for cell in self._set.match(block):
                    numbers = CellReader(cell.batch, block.rows).clauses
                    matched.update(self._by_number[number] for number in numbers.tolist() if number in self._by_number)
            for clause in matched:
                clause.note_match(interval)
        self._matches.append((interval, matched))
        if len(self._matches) > KEPT_MATCHES:
            self._known_from = self._matches.popleft()[0].end
        self.state = state
        return matched

    def matched_between(self, first_id: int, end_id: int) -> set[FollowedClause] | None:
        """The clauses that tuples with an id in an interval may satisfy; None if it is not known."""
        if first_id < self._known_from or end_id > self.state.stream.next_id:
            return None
        matches = (clauses for ids, clauses in self._matches if ids.first < end_id and ids.end > first_id)
        return set[FollowedClause]().union(*matches)

    def skip(self, state: StreamState, *, known: bool = True) -> set[FollowedClause]:
        """Skip the tuples that were added, so that each follower reads them by itself; returns all clauses.

        Unless `known`, the next tuples are skipped, too.
        """
        for clause in self._clauses.values():
            clause.intervals.clear()
            clause.known_from = state.stream.next_id if known else NEVER
        self._matches.clear()
        self._known_from = state.stream.next_id if known else NEVER
        self.state = state
        return set(self._clauses.values())


def _blocks(state: StreamState, interval: TupleIds) -> Iterator[Block]:
    """Blocks with all tuples of an interval, and perhaps others that were committed with them."""
    pending = state.pending.pieces
    for piece in pending:
        if piece.next_id > interval.first:
            yield from _cut(piece.schema, piece.tuples.slice(max(0, interval.first - piece.first_id)))
    pieces = {id(piece.segment) for piece in pending}
    ends = [*(segment.first_id for segment in state.segments), state.stream.next_id][1:]
    for segment, end in zip(state.segments, ends, strict=True):
        if end > interval.first and id(segment) not in pieces:
            yield from segment.run().blocks


def _cut(schema: Schema, tuples: pa.Table) -> Iterator[Block]:
    columns = tuples.select(schema.stored.names).combine_chunks()
    for batch in columns.to_batches(max_chunksize=BLOCK_ROWS):
        yield Block(batch)


class Unread(NamedTuple):
    """What a follower has to read."""

    since: Position
    """Without the tuples after its last position that do not concern it."""
    end: StreamState | None
    """If no tuple concerns it: the stream up to where this is known."""


@dataclass(eq=False)
class FollowedQuery:
    """A follower of a query."""

    stream_id: int
    clause: FollowedClause
    checked: int = -1
    """The version of the standing queries when it last read changes; the query may be unregistered or stopped since."""


class FollowedQueries:
    """The followers of queries over one stream in this process."""

    def __init__(self, view: View) -> None:
        """Start without followers."""
        self._view = view
        self._lock = threading.Lock()
        self._streams: dict[int, FollowedStream] = {}
        self._matched: set[FollowedClause] = set()

    def __len__(self) -> int:
        """The number of different clauses."""
        return sum(map(len, self._streams.values()))

    def add(self, stream_id: int, clause: Clause) -> FollowedQuery:
        """Add a follower of a query with that clause."""
        with self._lock:
            stream = self._streams.get(stream_id)
            if stream is None:
                stream = self._streams[stream_id] = FollowedStream(self._view.stream(stream_id))
            return FollowedQuery(stream_id, stream.add(clause))

    def remove(self, followed: FollowedQuery) -> None:
        """Remove a follower."""
        with self._lock:
            stream = self._streams[followed.stream_id]
            stream.remove(followed.clause)
            if not followed.clause.followers:
                self._matched.discard(followed.clause)
            if not len(stream):
                del self._streams[followed.stream_id]

    def advance(self) -> set[FollowedClause]:
        """Match all new tuples; returns the clauses that they may satisfy, unless `unread` has matched them before."""
        with self._lock:
            for stream in self._streams.values():
                self._advance(stream)
            matched, self._matched = self._matched, set()
            return matched

    def _advance(self, stream: FollowedStream) -> None:
        self._matched |= self._match_new(stream)

    def _match_new(self, stream: FollowedStream) -> set[FollowedClause]:
        try:
            state = self._view.stream(stream.state.stream.id)
        except UnknownStream:
            # Each follower gets the error when it reads its changes.
            return stream.skip(stream.state, known=False)
        if state is stream.state:
            return set()
        try:
            return stream.advance(state) if len(stream) >= LEAST_SHARED else stream.skip(state)
        except (DamagedFile, OSError):
            return stream.skip(state)

    def matched_between(self, stream_id: int, first_id: int, end_id: int) -> set[FollowedClause] | None:
        """The clauses that tuples of a stream with an id in an interval may satisfy; None if it is not known."""
        self._view.refresh()
        with self._lock:
            stream = self._streams.get(stream_id)
            if stream is None:
                return set()
            self._advance(stream)
            return stream.matched_between(first_id, end_id)

    def unread(self, followed: FollowedQuery, since: Position) -> Unread:
        """What a follower has to read since a position."""
        self._view.refresh()
        version, mark = self._view.version, since.marks.get(followed.stream_id)
        is_checked, followed.checked = version == followed.checked, version
        if mark is None or mark.is_within:
            return Unread(since, None)
        with self._lock:
            stream = self._streams[followed.stream_id]
            self._advance(stream)
            state = stream.state
            first_id = followed.clause.first_match(mark.next_id, state.stream.next_id)
        is_empty = first_id >= state.stream.next_id and is_checked
        skipped = Position(since.seq, {**since.marks, followed.stream_id: Mark(first_id)}, since.pushes)
        return Unread(skipped, state if is_empty else None)
