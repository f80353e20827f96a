"""The operator of a followed join at work: it reads new tuples, and keeps the last joined ones for its followers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from tureen.errors import DamagedFile, QueryFailed
from tureen.joining.continuous_join import JoinSetting
from tureen.joining.join_state import InputState
from tureen.joining.joined_block import JoinedBlock
from tureen.joining.planned_join import PlannedJoin
from tureen.joining.stem import Ids, Stem
from tureen.position import Mark, Position
from tureen.results.changes.closed_inputs import PunctuatedJoin
from tureen.results.following.block_rows import ShapedQueries
from tureen.results.following.join_purging import JoinPurging, is_punctuated
from tureen.results.following.operator_rows import OperatorQuery
from tureen.results.following.row_shape import RowShape
from tureen.results.joins.stem_input import StreamStem, TableStem
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.view import View

KEPT_TUPLES = 1 << 18
"""The most joined tuples that an operator keeps for its followers, plus those of its last block."""

KEPT_BLOCKS = 64
"""The most blocks of joined tuples that an operator keeps."""

BLOCK_TUPLES = 65_536
"""The most new tuples of a stream that are joined in one block."""

MOST_BEHIND = 1 << 20
"""With more new tuples of a stream than this, after a time in which nobody read, the operator starts at their end."""

ReadTable = Callable[[Snapshot, str], pa.Table]
"""The content of a table in a snapshot."""


@dataclass(eq=False)
class FollowedJoinQuery:
    """A query whose rows an operator produces, for one or more followers."""

    handle: str
    operator: JoinOperator
    query: OperatorQuery
    slot: int
    same_shape: ShapedQueries
    known_from: Mapping[int, int]
    """A vector of marks; all rows that are new since then are in `blocks`."""
    blocks: deque[JoinedBlock] = field(default_factory=deque)
    """The last blocks that may have rows of the query."""
    followers: int = 0

    def blocks_since(self, since: Mapping[int, int]) -> Sequence[JoinedBlock] | None:
        """The blocks with all rows that are new since a vector of marks; None if some are not kept."""
        for stream, mark in self.known_from.items():
            if since[stream] < mark:
                return None
        blocks: list[JoinedBlock] = []
        for block in reversed(self.blocks):
            # Most followers have read all but the last one.
            if block.is_before(since):
                break
            blocks.append(block)
        return blocks[::-1]


class ReachedMarks(NamedTuple):
    """How far an operator has read: what all reads that end there have in common."""

    moment: Snapshot
    ends: Mapping[int, int]
    marks: Mapping[int, Mark]
    position: str


class JoinOperator:
    """A continuous join at work: how far it has read its inputs, and its last output."""

    def __init__(self, view: View, read_table: ReadTable, join: PlannedJoin, punctuated: PunctuatedJoin) -> None:
        """Start at the end of all streams."""
        self.join, self._punctuated = join, punctuated
        self.lock = join.lock
        self._view, self._read_table, self._indexes = view, read_table, punctuated.indexes
        self._streams = join.join.streams
        self._tables = tuple(
            {relation.table_id: None for relation in join.join.relations if relation.table_id is not None}
        )
        self.blocks: deque[JoinedBlock] = deque()
        self._kept = 0
        self.queries: dict[str, FollowedJoinQuery] = {}
        self._by_shape: dict[RowShape, ShapedQueries] = {}
        self._by_slot: dict[int, set[FollowedJoinQuery]] = {}
        snapshot = self._read_snapshot()
        self.moment = _moment(snapshot)
        """The commit and the count of pushes that it has seen; without streams, which would keep files mapped."""
        self.ends, self._contents = self._ends_of(snapshot), self._contents_of(snapshot)
        self.purging: JoinPurging | None = None
        """The state of the inputs; None as long as no stream has punctuations."""
        self._start_purging(snapshot)
        self._stamp = (-1, -1)
        self._reached: ReachedMarks | None = None
        self.matched: set[FollowedJoinQuery] = set()
        """The queries that may have new rows which `FollowedJoins.advance` has not returned yet."""
        self.produced = 0
        """The number of joined tuples so far."""
        self.propagated = 0
        """The number of punctuations that queries have got so far."""

    def _read_snapshot(self) -> Snapshot:
        return self._view.snapshot(self._streams, self._tables)

    def _ends_of(self, snapshot: Snapshot) -> dict[int, int]:
        return {stream: snapshot.streams[stream].stream.next_id for stream in self._streams}

    def _contents_of(self, snapshot: Snapshot) -> list[str]:
        return [snapshot.tables[table].content.path for table in self._tables]

    def add(self, handle: str, query: OperatorQuery) -> FollowedJoinQuery:
        """Produce the rows of a query too; each call needs one of `remove`."""
        followed = self.queries.get(handle)
        if followed is None:
            slot = self.join.consumers.add(query.consumer)
            same_shape = self._by_shape.setdefault(query.shape, ShapedQueries(query.shape))
            same_shape.add(slot)
            followed = self.queries[handle] = FollowedJoinQuery(handle, self, query, slot, same_shape, self.ends)
            self._by_slot.setdefault(slot, set()).add(followed)
            self._use_reach()
        followed.followers += 1
        return followed

    def remove(self, followed: FollowedJoinQuery) -> None:
        """Remove a follower of a query."""
        followed.followers -= 1
        if not followed.followers:
            del self.queries[followed.handle]
            self.join.consumers.remove(followed.query.consumer)
            self._by_slot[followed.slot].discard(followed)
            self.matched.discard(followed)
            followed.same_shape.remove(followed.slot)
            if not followed.same_shape.slots:
                del self._by_shape[followed.same_shape.shape]

    def reached(self) -> ReachedMarks:
        """How far it has read."""
        if self._reached is None:
            marks = {stream: Mark(end) for stream, end in self.ends.items()}
            position = str(Position(self.moment.seq, marks, self.moment.pushes))
            self._reached = ReachedMarks(self.moment, self.ends, marks, position)
        return self._reached

    def advance(self) -> None:
        """Join the tuples that were added since the last call."""
        stamp = self._view.stamp()
        if stamp == self._stamp:
            return
        self._advance()
        self._stamp, self._reached = stamp, None

    def _advance(self) -> None:
        snapshot = self._read_snapshot()
        ends, contents = self._ends_of(snapshot), self._contents_of(snapshot)
        is_near = all(0 <= ends[stream] - self.ends[stream] <= MOST_BEHIND for stream in self._streams)
        # Changes are computed with the table's content at the time of reading.
        if contents != self._contents or not is_near:
            self._restart(snapshot)
            return
        try:
            while self.ends != ends:
                self._keep(self._joined(snapshot, ends))
            self._purge(snapshot)
            self.moment = _moment(snapshot)
        except (QueryFailed, DamagedFile, OSError):
            # Followers that it concerns get the error when they compute their changes by themselves.
            self._restart(snapshot)

    def _joined(self, snapshot: Snapshot, ends: Mapping[int, int]) -> JoinedBlock:
        """Join the next tuples, and keep the result."""
        end = {stream: min(ends[stream], self.ends[stream] + BLOCK_TUPLES) for stream in self._streams}
        least = self.join.least_end(end)
        end = {stream: min(ends[stream], least[stream]) for stream in self._streams}
        if self.purging is None:
            self._start_purging(snapshot)

        def stem_of(number: int, ids: Ids, earliest: int | None) -> Stem:
            relation = self.join.join.relations[number]
            if relation.table_id is not None:
                return TableStem(self._read_table(snapshot, relation.table_id), self._indexes)
            if self.purging is not None:
                return self.purging.stem(snapshot, number, ids, earliest)
            assert relation.stream_id is not None
            return StreamStem(snapshot.streams[relation.stream_id], ids, earliest, self._indexes)

        keep = None if self.purging is None else self.purging.keep
        pieces = self.join.join_new(stem_of, self.ends, end, keep)
        block = JoinedBlock(self.ends, end, pieces)
        self.ends = end
        return block

    def _start_purging(self, snapshot: Snapshot) -> None:
        """Keep a state of the inputs, if a stream has punctuations."""
        if self.join.setting is not JoinSetting.WINDOWS and is_punctuated(snapshot):
            self.purging = JoinPurging(self._view.catalog, self._punctuated, snapshot, self.ends)
            self._use_reach()

    def _use_reach(self) -> None:
        """Use how far the windows of all queries reach."""
        if self.purging is not None:
            inputs, windows = range(len(self.join.names)), self.join.setting is not JoinSetting.PUNCTUATIONS
            self.purging.use_reach([self.join.consumers.reach(number) if windows else None for number in inputs])

    def _purge(self, snapshot: Snapshot, *, is_lazy: bool = True) -> None:
        """Apply the punctuations that stand before the tuples that were joined; lazily, once there are enough."""
        if self.purging is None:
            self._start_purging(snapshot)
        if self.purging is not None and (not is_lazy or self.purging.is_due(snapshot, self.ends)):
            tables = {
                number: TableStem(self._read_table(snapshot, relation.table_id), self._indexes)
                for number, relation in enumerate(self.join.join.relations)
                if relation.table_id is not None
            }
            self.purging.apply(snapshot, tables, self.ends)
            for number, state in enumerate(self.purging.inputs):
                self.join.purge(number, state.take_left())

    def state(self) -> dict[str, dict[str, int]]:
        """For each input that is a stream, the tuples in its state, and how many left it or were never in it."""
        snapshot = self._read_snapshot()
        if self._contents_of(snapshot) == self._contents:
            with suppress(QueryFailed, DamagedFile, OSError):
                self._purge(snapshot, is_lazy=False)
        latest = {stream: snapshot.streams[stream].stream.last_time for stream in self._streams}
        counts = {}
        for number, relation in enumerate(self.join.join.relations):
            if relation.stream_id is None:
                continue
            known = InputState() if self.purging is None else self.purging.inputs[number]
            ids = (0, self.ends[relation.stream_id])
            stem = StreamStem(snapshot.streams[relation.stream_id], ids, None, self._indexes, known.dead)
            alive, in_state = stem.count_since(None), stem.count_since(self._horizon(number, latest))
            counts[self.join.names[number]] = {
                "tuples": in_state,
                "purged": known.purged,
                "discarded": known.discarded,
                "invalidated": alive - in_state,
                "dropped": known.dropped,
                "punctuations": known.punctuations,
            }
        return counts

    def _horizon(self, number: int, latest: Mapping[int, int | None]) -> int | None:
        """The time before which tuples of an input are in no window of tuples that arrive in order of time."""
        reach = None if self.join.setting is JoinSetting.PUNCTUATIONS else self.join.consumers.reach(number)
        others = [relation.stream_id for other, relation in enumerate(self.join.join.relations) if other != number]
        times = [latest[stream] for stream in others if stream is not None]
        known = [time for time in times if time is not None]
        return min(known) - reach if reach is not None and known and len(known) == len(times) else None

    def _keep(self, block: JoinedBlock) -> None:
        """Keep a block for those who want a tuple of it, and drop the oldest ones."""
        if not block.size:
            return
        self.produced += block.size
        self._kept += block.size
        self.blocks.append(block)
        for slot in block.slots:
            for query in self._by_slot.get(slot, ()):
                query.blocks.append(block)
                self.matched.add(query)
        while len(self.blocks) > KEPT_BLOCKS or self._kept - block.size > KEPT_TUPLES:
            self._drop(self.blocks.popleft())

    def _drop(self, block: JoinedBlock) -> None:
        self._kept -= block.size
        for slot in block.slots:
            for query in self._by_slot.get(slot, ()):
                # It is not there for a query that was added later.
                if query.blocks and query.blocks[0] is block:
                    query.blocks.popleft()
                    query.known_from = block.end

    def restart(self) -> None:
        """Continue from the end of all streams, without what lies before."""
        self._restart(self._read_snapshot())
        self._reached = None

    def _restart(self, snapshot: Snapshot) -> None:
        self.blocks.clear()
        self._kept = 0
        self.join.restart()
        self.moment, self.ends, self._contents = _moment(snapshot), self._ends_of(snapshot), self._contents_of(snapshot)
        self.purging = None
        self._start_purging(snapshot)
        for same_shape in self._by_shape.values():
            same_shape.forget()
        for query in self.queries.values():
            query.blocks.clear()
            query.known_from = self.ends
        self.matched.update(self.queries.values())


def _moment(snapshot: Snapshot) -> Snapshot:
    return Snapshot(snapshot.seq, snapshot.pushes, {}, {})
