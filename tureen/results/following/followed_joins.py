"""Followed joins: one operator joins the new tuples for all followers and derived streams with the same join.

Followers read their rows from the last blocks of joined tuples that the operator has produced. One whose position is
before these, or who wants only some of the new tuples, computes its changes by itself
(`tureen.results.changes.join_changes`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tureen.eddy.join_routing import JoinRouter, routing_policy
from tureen.errors import QueryFailed, UnknownStream, UnknownTable, Unsupported
from tureen.join import JoinCompare
from tureen.joining.continuous_join import ContinuousJoin, JoinSetting
from tureen.joining.equality_classes import EqualityClasses
from tureen.joining.join_forest import JoinForest
from tureen.joining.joined_block import JoinedBlock
from tureen.joining.plan_inputs import have_part_in_common
from tureen.joining.plan_report import PLAN_COUNTS, describe_plan, plan_counts
from tureen.joining.planned_join import PlannedJoin
from tureen.joining.shared_join import (
    JoinedRelation,
    SharedJoin,
    SharedJoinOfQuery,
    compared_join_of,
    shared_join_of,
)
from tureen.plan_hint import PlanHint
from tureen.position import Mark, Position
from tureen.pot.registered import Registered
from tureen.results.changes.closed_inputs import PunctuatedJoin
from tureen.results.changes.early_propagation import Exhaustion
from tureen.results.changes.join_changes import JoinedPart, NewJoinedRows, check_can_follow
from tureen.results.changes.join_propagation import JoinPropagation
from tureen.results.changes.output_patterns import OutputPatterns
from tureen.results.changes.punctuated_changes import with_propagated
from tureen.results.following.join_operator import FollowedJoinQuery, JoinOperator, ReadTable
from tureen.results.following.join_purging import is_punctuated
from tureen.results.following.operator_rows import OperatorQuery, reach_of
from tureen.results.joins.flat_join import FlatJoin
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.snapshot.closing_histories import ClosingHistories
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.view import View
from tureen.routing_policies import ROUTING_POLICIES


@dataclass(eq=False)
class JoinFollower:
    """A follower of a query over a join."""

    clause: FollowedJoinQuery
    checked: int = -1
    """See `tureen.results.following.followed.FollowedQuery`."""


@dataclass
class FollowedJoins:
    """All continuous joins of a process."""

    view: View
    read_table: ReadTable
    indexes: KeyIndexes
    routing: str = ROUTING_POLICIES[0]
    setting: JoinSetting = JoinSetting.BOTH
    """The setting of operators that are started from now on; all but the default are for experiments."""
    _operators: dict[tuple[SharedJoin, PlanHint], JoinOperator] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Read the histories of punctuations when they are needed."""
        self.histories = ClosingHistories(self.view.catalog)

    def __len__(self) -> int:
        """The number of operators."""
        return len(self._operators)

    def operators(self) -> list[JoinOperator]:
        """The operators at work."""
        with self._lock:
            return list(self._operators.values())

    def add(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin) -> JoinFollower | None:
        """Add a follower of a query; None if its join is not one that is shared."""
        flat_join = _flat_join(ready)
        shared = None if flat_join is None else shared_join(registered, ready, flat_join)
        if flat_join is None or shared is None:
            return None
        with self._lock:
            key = shared.join, registered.plan_hint
            operator = self._operators.get(key)
            if operator is None:
                operator = self._operators[key] = self._start(*key, snapshot)
            with operator.lock:
                query = OperatorQuery(ready, shared, _schemas(shared.join, snapshot), has_hidden=flat_join.has_hidden)
                return JoinFollower(operator.add(registered.id, query))

    def _start(self, join: SharedJoin, hint: PlanHint, snapshot: Snapshot) -> JoinOperator:
        names = list(_names(join, snapshot))
        router = JoinRouter(routing_policy(self.routing, names))
        schemas = _schemas(join, snapshot)
        planned = PlannedJoin(
            ContinuousJoin(join, names, schemas, router, self.setting), hint, self._forest(join, hint)
        )
        return JoinOperator(self.view, self.read_table, planned, self.punctuated(join, schemas))

    def _forest(self, join: SharedJoin, hint: PlanHint) -> JoinForest | None:
        """That of an operator whose tree has a part in common with that of a new one; None if there is none."""
        if not hint.has_tree:
            return None
        others = (each.join for each in self._operators.values() if each.join.hint.has_tree)
        return next((other.forest for other in others if have_part_in_common(other.join, join)), None)

    def punctuated(self, join: SharedJoin, schemas: Sequence[pa.Schema]) -> PunctuatedJoin:
        """A join with the punctuations of its streams."""
        return PunctuatedJoin(join, EqualityClasses.of(join, schemas), self.histories, self.indexes)

    def remove(self, follower: JoinFollower) -> None:
        """Remove a follower; an operator without followers is dropped."""
        operator = follower.clause.operator
        with self._lock, operator.lock:
            operator.remove(follower.clause)
            if not operator.queries:
                operator.join.restart()
                del self._operators[operator.join.join, operator.join.hint]

    def advance(self) -> set[FollowedJoinQuery]:
        """Join all new tuples; returns the queries that may have new rows."""
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
            **_state_counts(operators),
            **_plan_sums(operators),
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
                "state": operator.state(),
                "propagated_punctuations": operator.propagated,
                **describe_plan(operator.join),
            }

    def read(self, follower: JoinFollower, since: Position, at_most: int | None) -> NewJoinedRows | Position:
        """The rows of a query since a position, or the position since which the follower must compute them alone."""
        followed, operator = follower.clause, follower.clause.operator
        with operator.lock:
            if operator.queries.get(followed.handle) is not followed:
                # The last follower was removed, perhaps while it was about to read: its blocks end then.
                return since
            with suppress(UnknownStream, UnknownTable):
                operator.advance()
            reached = operator.reached()
            vector = _vector(since, reached.ends, at_most)
            blocks = None if vector is None else followed.blocks_since(vector)
            slots = followed.same_shape.slots
        if vector is None or blocks is None:
            return since
        try:
            if followed.query.has_hidden:
                new = followed.query.first_with_rows(blocks, followed.slot, vector)
                if new is not None:
                    return _later(since, new.begin)
                blocks = ()
            rows, parts = _rows_of(followed, blocks, slots, vector, reached.ends)
        except QueryFailed:
            # Perhaps only on a row that the query does not reach alone, or with fewer tuples.
            return since
        return NewJoinedRows(rows, reached.moment, reached.marks, parts, {}, reached.position)

    def propagated(
        self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin, new: NewJoinedRows, since: Position | None
    ) -> NewJoinedRows:
        """New rows of a query since a position with the punctuations of its output."""
        if not is_punctuated(snapshot):
            return new
        flat = _flat_join(ready)
        shared = None if flat is None else shared_join(registered, ready, flat)
        propagation = None
        if shared is not None:
            outputs, exhaustion = OutputPatterns(ready.query), self._exhaustion(shared, snapshot, ready)
            propagation = JoinPropagation(self.view.catalog, exhaustion, shared, outputs, snapshot)
        punctuated_rows = with_propagated(self.view.catalog, new, propagation, snapshot, since)
        operator = None if shared is None else self._operators.get((shared.join, registered.plan_hint))
        if operator is not None:
            operator.propagated += len(punctuated_rows.punctuations)
        return punctuated_rows

    def exhaustion(self, registered: Registered, snapshot: Snapshot, ready: ReadyJoin) -> Exhaustion | None:
        """Which tuples of a query's join have left its windows for good; None if it has no changes."""
        flat = _flat_join(ready)
        relations = _relations(registered, ready)
        compared = None if flat is None or relations is None else compared_join_of(flat.join, relations)
        if flat is None or compared is None or not compared.join.streams:
            return None
        hidden = frozenset(index for index, number in enumerate(compared.inputs) if number not in flat.visible)
        return replace(self._exhaustion(compared, snapshot, ready), hidden=hidden)

    def _exhaustion(self, shared: SharedJoinOfQuery, snapshot: Snapshot, ready: ReadyJoin) -> Exhaustion:
        punctuated = self.punctuated(shared.join, _schemas(shared.join, snapshot))
        return Exhaustion(punctuated, [reach_of(ready.inputs[number].input.window) for number in shared.inputs])


def _plan_sums(operators: Sequence[JoinOperator]) -> dict[str, int]:
    """Sums over the plans of operators."""
    sums = dict.fromkeys(PLAN_COUNTS, 0)
    for operator in operators:
        with operator.lock:
            for name, count in plan_counts(operator.join).items():
                sums[name] += count
    return sums


def _state_counts(operators: Sequence[JoinOperator]) -> dict[str, int]:
    """Sums over the inputs of operators whose streams have punctuations."""
    states: list[dict[str, int]] = []
    for operator in operators:
        with operator.lock, suppress(UnknownStream, UnknownTable):
            if operator.purging is not None:
                states += operator.state().values()
    names = ("tuples", "purged", "discarded", "invalidated", "dropped", "punctuations")
    sums = {f"state_{name}": sum(state[name] for state in states) for name in names}
    return {**sums, "propagated_punctuations": sum(operator.propagated for operator in operators)}


def _later(since: Position, begin: Mapping[int, int]) -> Position:
    """A position with the marks of a block, where these are later."""
    marks = {stream: Mark(max(since.marks[stream].next_id, mark)) for stream, mark in begin.items()}
    return replace(since, marks=marks)


def _vector(since: Position, ends: Mapping[int, int], at_most: int | None) -> dict[int, int] | None:
    """The marks of a position; None if it is within a tuple, after the ends, or more than `at_most` before them."""
    vector = {}
    for stream, end in ends.items():
        mark = since.marks.get(stream)
        if mark is None or mark.is_within or mark.next_id > end:
            return None
        if at_most is not None and end - mark.next_id > at_most:
            return None
        vector[stream] = mark.next_id
    return vector


def _rows_of(
    followed: FollowedJoinQuery,
    blocks: Sequence[JoinedBlock],
    slots: Sequence[int],
    since: Mapping[int, int],
    ends: Mapping[int, int],
) -> tuple[pa.Table, list[JoinedPart]]:
    """The rows of a query in blocks that are new since a vector of marks: with those of queries of its shape."""
    if len(blocks) == 1 and len(slots) > 1 and followed.query.can_share(blocks[0]):
        (block,) = blocks
        of_shape = followed.same_shape.rows_of(block, slots) if block.is_after(since) else None
        rows = None if of_shape is None else of_shape.of_slot(followed.slot)
        if rows is not None and rows.is_ordered_since(since, block.begin):
            return rows.rows, rows.parts(since, ends)
    return followed.query.read(blocks, followed.slot, since, ends)


def _flat_join(ready: ReadyJoin) -> FlatJoin | None:
    try:
        return check_can_follow(ready.query)
    except Unsupported:
        return None


def shared_join(registered: Registered, ready: ReadyJoin, flat: FlatJoin) -> SharedJoinOfQuery | None:
    """The join of a query that an operator can compute for several queries; None if there is none."""
    relations = _relations(registered, ready)
    shared = None if relations is None else shared_join_of(flat.join, relations)
    if shared is None or not shared.join.streams or any(isinstance(factor, JoinCompare) for factor in shared.rest):
        return None
    return shared


def _relations(registered: Registered, ready: ReadyJoin) -> list[JoinedRelation] | None:
    """The relation of each input; None if one of them is a query."""
    if len(registered.inputs) != len(ready.inputs):
        return None
    return [JoinedRelation(leaf.stream_id, leaf.table_id) for leaf in registered.inputs]


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
