"""Followed joins: one operator joins the new tuples for all followers and derived streams with the same join.

Followers read their rows from the last blocks of joined tuples that the operator has produced. One whose position is
before these, or who wants only some of the new tuples, computes its changes by itself (`tureen.results.join_changes`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from tureen.eddy.join_routing import JoinRouter, routing_policy
from tureen.errors import DamagedFile, QueryFailed, UnknownStream, UnknownTable, Unsupported
from tureen.join import JoinCompare
from tureen.joining.continuous_join import ContinuousJoin
from tureen.joining.joined_block import JoinedBlock
from tureen.joining.shared_join import JoinedRelation, SharedJoin, SharedJoinOfQuery, shared_join_of
from tureen.joining.stem import Ids, Stem
from tureen.position import Position
from tureen.pot.queries import Registered
from tureen.results.join_changes import NewJoinedRows, check_can_follow
from tureen.results.join_ready import ReadyJoin
from tureen.results.key_indexes import KeyIndexes
from tureen.results.operator_rows import OperatorQuery
from tureen.results.stem_input import StreamStem, TableStem
from tureen.results.stream_state import Snapshot
from tureen.results.view import View
from tureen.routing_policies import ROUTING_POLICIES

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
    known_from: Mapping[int, int]
    """A vector of marks; all rows that are new since then are in `blocks`."""
    blocks: deque[JoinedBlock] = field(default_factory=deque)
    """The last blocks that may have rows of the query."""
    followers: int = 0

    def blocks_since(self, since: Mapping[int, int]) -> Sequence[JoinedBlock] | None:
        """The blocks with all rows that are new since a vector of marks; None if some are not kept."""
        if any(since[stream] < mark for stream, mark in self.known_from.items()):
            return None
        blocks: list[JoinedBlock] = []
        for block in reversed(self.blocks):
            # Most followers have read all but the last one.
            if all(block.end[stream] <= mark for stream, mark in since.items()):
                break
            blocks.append(block)
        return blocks[::-1]


@dataclass(eq=False)
class JoinFollower:
    """A follower of a query over a join."""

    clause: FollowedJoinQuery
    checked: int = -1
    """See `tureen.results.followed.FollowedQuery`."""


class JoinOperator:
    """A continuous join at work: how far it has read its inputs, and its last output."""

    def __init__(self, view: View, read_table: ReadTable, indexes: KeyIndexes, join: ContinuousJoin) -> None:
        """Start at the end of all streams."""
        self.join = join
        self.lock = threading.Lock()
        self._view, self._read_table, self._indexes = view, read_table, indexes
        self._streams = join.join.streams
        self._tables = tuple({each.table_id: None for each in join.join.relations if each.table_id is not None})
        self.blocks: deque[JoinedBlock] = deque()
        self._kept = 0
        self.queries: dict[str, FollowedJoinQuery] = {}
        self._by_slot: dict[int, set[FollowedJoinQuery]] = {}
        snapshot = self._read_snapshot()
        self.moment = _moment(snapshot)
        """The commit and the count of pushes that it has seen; without streams, which would keep files mapped."""
        self.ends, self._contents = self._ends_of(snapshot), self._contents_of(snapshot)
        self.matched: set[FollowedJoinQuery] = set()
        """The queries that may have new rows which `FollowedJoins.advance` has not returned yet."""
        self.produced = 0
        """The number of joined tuples so far."""

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
            followed = self.queries[handle] = FollowedJoinQuery(handle, self, query, slot, self.ends)
            self._by_slot.setdefault(slot, set()).add(followed)
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

    def advance(self) -> None:
        """Join the tuples that were added since the last call."""
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
            self.moment = _moment(snapshot)
        except (QueryFailed, DamagedFile, OSError):
            # Followers that it concerns get the error when they compute their changes by themselves.
            self._restart(snapshot)

    def _joined(self, snapshot: Snapshot, ends: Mapping[int, int]) -> JoinedBlock:
        """Join the next tuples, and keep the result."""
        end = {stream: min(ends[stream], self.ends[stream] + BLOCK_TUPLES) for stream in self._streams}

        def stem_of(number: int, ids: Ids, earliest: int | None) -> Stem:
            relation = self.join.join.relations[number]
            if relation.table_id is not None:
                return TableStem(self._read_table(snapshot, relation.table_id), self._indexes)
            assert relation.stream_id is not None
            return StreamStem(snapshot.streams[relation.stream_id], ids, earliest, self._indexes)

        pieces = self.join.join_new(stem_of, self.ends, end)
        block = JoinedBlock(self.ends, end, pieces)
        self.ends = end
        return block

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

    def _restart(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, without what lies before."""
        self.blocks.clear()
        self._kept = 0
        self.moment, self.ends, self._contents = _moment(snapshot), self._ends_of(snapshot), self._contents_of(snapshot)
        for query in self.queries.values():
            query.blocks.clear()
            query.known_from = self.ends
        self.matched.update(self.queries.values())


@dataclass
class FollowedJoins:
    """All continuous joins of a process."""

    view: View
    read_table: ReadTable
    indexes: KeyIndexes
    routing: str = ROUTING_POLICIES[0]
    _operators: dict[SharedJoin, JoinOperator] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        """The number of operators."""
        return len(self._operators)

    def operators(self) -> list[JoinOperator]:
        """The operators at work."""
        with self._lock:
            return list(self._operators.values())

    def add(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin) -> JoinFollower | None:
        """Add a follower of a query; None if its join is not one that is shared."""
        shared = shared_join(registered, ready)
        if shared is None:
            return None
        with self._lock:
            operator = self._operators.get(shared.join)
            if operator is None:
                operator = self._operators[shared.join] = self._start(shared.join, snapshot)
            with operator.lock:
                query = OperatorQuery(ready, shared, _schemas(shared.join, snapshot))
                return JoinFollower(operator.add(registered.id, query))

    def _start(self, join: SharedJoin, snapshot: Snapshot) -> JoinOperator:
        names = list(_names(join, snapshot))
        router = JoinRouter(routing_policy(self.routing, names))
        continuous = ContinuousJoin(join, names, _schemas(join, snapshot), router)
        return JoinOperator(self.view, self.read_table, self.indexes, continuous)

    def remove(self, follower: JoinFollower) -> None:
        """Remove a follower; an operator without followers is dropped."""
        operator = follower.clause.operator
        with self._lock, operator.lock:
            operator.remove(follower.clause)
            if not operator.queries:
                del self._operators[operator.join.join]

    def advance(self) -> set[FollowedJoinQuery]:
        """Join all new tuples; the queries that may have new rows."""
        matched: set[FollowedJoinQuery] = set()
        for operator in self.operators():
            with operator.lock:
                with suppress(UnknownStream, UnknownTable):
                    operator.advance()
                matched |= operator.matched
                operator.matched = set()
        return matched

    def counts(self) -> dict[str, int]:
        """Sums over the operators at work."""
        operators = self.operators()
        totals = [operator.join.router.totals() for operator in operators]
        return {
            "operators": len(operators),
            "routed_tuples": sum(each["tuples"] for each in totals),
            "visits": sum(each["visits"] for each in totals),
            "matches": sum(each["matches"] for each in totals),
            "order_changes": sum(operator.join.router.order_changes for operator in operators),
        }

    def describe(self, handle: str) -> dict[str, object] | None:
        """The operator that joins new tuples for a query; None if nobody follows it, or it shares none."""
        operator = next((each for each in self.operators() if handle in each.queries), None)
        if operator is None:
            return None
        with operator.lock:
            return {
                "queries": len(operator.queries),
                "lineages": len(operator.join.consumers),
                "routing": self.routing,
                "joined_tuples": operator.produced,
                "kept_blocks": len(operator.blocks),
                "inputs": operator.join.router.counters(),
            }

    def read(self, follower: JoinFollower, since: Position, at_most: int | None) -> NewJoinedRows | None:
        """The rows of a query since a position; None if the follower must compute them by itself."""
        followed, operator = follower.clause, follower.clause.operator
        with operator.lock:
            if operator.queries.get(followed.handle) is not followed:
                # The last follower was removed, perhaps while it was about to read: its blocks end then.
                return None
            with suppress(UnknownStream, UnknownTable):
                operator.advance()
            marks = {stream: since.marks.get(stream) for stream in operator.ends}
            vector = {stream: mark.next_id for stream, mark in marks.items() if mark and not mark.is_within}
            if len(vector) < len(marks):
                return None
            moment, ends = operator.moment, operator.ends
            blocks = followed.blocks_since(vector)
        if blocks is None or any(mark > ends[stream] for stream, mark in vector.items()):
            return None
        if at_most is not None and any(ends[stream] - mark > at_most for stream, mark in vector.items()):
            return None
        try:
            return followed.query.read(blocks, followed.slot, vector, moment, ends)
        except QueryFailed:
            # Perhaps only on a row that the query does not reach alone, or with fewer tuples.
            return None


def shared_join(registered: Registered, ready: ReadyJoin) -> SharedJoinOfQuery | None:
    """The join of a query that an operator can compute for several queries; None if there is none."""
    try:
        flat = check_can_follow(ready.query)
    except Unsupported:
        return None
    if flat.has_hidden or len(registered.inputs) != len(ready.inputs):
        return None
    relations = [JoinedRelation(leaf.stream_id, leaf.table_id) for leaf in registered.inputs]
    shared = shared_join_of(flat.join, relations)
    if shared is None or not shared.join.streams or any(isinstance(factor, JoinCompare) for factor in shared.rest):
        return None
    return shared


def _moment(snapshot: Snapshot) -> Snapshot:
    return Snapshot(snapshot.seq, snapshot.pushes, {}, {})


def _schemas(join: SharedJoin, snapshot: Snapshot) -> list[pa.Schema]:
    return [
        snapshot.streams[each.stream_id].stream.schema.stored
        if each.stream_id is not None
        else snapshot.tables[each.table_id or ""].schema.arrow
        for each in join.relations
    ]


def _names(join: SharedJoin, snapshot: Snapshot) -> Iterator[str]:
    """The names of the inputs; of a relation that is joined with itself, with a number."""
    used: dict[str, int] = {}
    for each in join.relations:
        relation = snapshot.tables[each.table_id] if each.table_id is not None else None
        name = relation.name if relation is not None else snapshot.streams[each.stream_id or 0].stream.name
        used[name] = used.get(name, 0) + 1
        yield name if used[name] == 1 else f"{name} ({used[name]})"
