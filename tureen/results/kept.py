"""What a process keeps of partial aggregates: one structure for all queries of one SELECT-FROM-WHERE."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tureen.aggregates.expression_values import evaluate
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Strip, make_strip
from tureen.errors import DamagedFile, QueryFailed
from tureen.matching import Selector
from tureen.pot.queries import RegisteredInput
from tureen.results.gather import gather_segment
from tureen.results.segment import Segment
from tureen.results.view import StreamState
from tureen.schema import Schema

Key = tuple[int, ...]
"""What a segment is known by."""

Shape = tuple[int, str]
"""What a structure is known by: its stream, and the shape of its queries."""

KEPT_BYTES = 1 << 29
"""About how many bytes of partial aggregates a process keeps; the least recently used go first."""

MOST_DISTINCT = 1 << 17
"""From so many DISTINCT values on they are counted from the rows."""

_MANY_GROUPS = 1 << 16
"""From so many groups on, those that no tuple has any more are worth forgetting."""


class Structure:
    """The partial aggregates of one SELECT-FROM-WHERE: a strip for each segment, and the groups they share.

    Use it only while holding its lock; its size alone may be looked at by anybody.
    """

    def __init__(self, plan: Plan) -> None:
        """Start with nothing; strips are made when they are first asked for."""
        self.plan = plan
        self.lock = threading.Lock()
        self.groups = GroupNumbers([key.type for key in plan.keys])
        self.nbytes = 0
        """About how much memory it takes."""
        self._strips: dict[Key, Strip] = {}
        self._hopeless: frozenset[Key] = frozenset()
        """Segments of which nothing can be kept, since an expression raises there or values are too many."""

    def strips(
        self, state: StreamState, numbers: Sequence[int], query_input: RegisteredInput, selector: Selector
    ) -> list[tuple[int, Strip]] | None:
        """The strips of some segments; None where there is none of one of them.

        An expression may raise on a tuple of a segment that is not in the window at all.
        """
        self.keep_only(state)
        strips: list[tuple[int, Strip]] = []
        for number in numbers:
            segment = state.segments[number]
            if segment.key not in self._strips and segment.key not in self._hopeless:
                self._add(segment, state.stream.schema, query_input, selector)
            if segment.key in self._hopeless:
                return None
            strips.append((number, self._strips[segment.key]))
        return strips

    def account(self) -> None:
        """Take stock of the memory that it takes."""
        self.nbytes = 100 * len(self.groups) + sum(strip.nbytes for strip in self._strips.values())

    def forget_panes(self) -> None:
        """Let go of what can be made again most easily."""
        for strip in self._strips.values():
            strip.by_time.clear()
            strip.by_row.clear()
        self.account()

    def _add(self, segment: Segment, schema: Schema, query_input: RegisteredInput, selector: Selector) -> None:
        try:
            self._strips[segment.key] = self._make(segment, schema, query_input, selector)
        except (QueryFailed, DamagedFile):
            # Tuples do not change: it would raise again, perhaps where the window does not reach.
            self._hopeless |= {segment.key}
        if self.plan.distinct is not None and len(self.groups) > MOST_DISTINCT:
            # Keeping values that are nearly all different would be keeping the rows.
            self._hopeless |= self._strips.keys()
            self._forget()
        self.account()

    def keep_only(self, state: StreamState) -> None:
        """Forget what belongs to segments that are gone, and groups that no tuple has any more."""
        live = {segment.key for segment in state.segments}
        self._hopeless &= live
        if not self._strips.keys() <= live:
            self._strips = {key: strip for key, strip in self._strips.items() if key in live}
            self.account()
        if len(self.groups) > max(_MANY_GROUPS, 2 * sum(len(strip.codes) for strip in self._strips.values())):
            self._forget()

    def _forget(self) -> None:
        self.groups, self._strips = GroupNumbers([key.type for key in self.plan.keys]), {}
        self.account()

    def _make(self, segment: Segment, schema: Schema, query_input: RegisteredInput, selector: Selector) -> Strip:
        hits = segment.hits(query_input, selector, 0, segment.rows)
        values = [measure.value for measure in self.plan.measures]
        expressions = [*self.plan.keys, *values]
        names = sorted({name for expression in expressions for name in expression.columns}) or [schema.time_column]
        columns = evaluate(expressions, gather_segment(schema, names, hits))
        codes = self.groups.codes(columns[: len(self.plan.keys)], len(hits.rows))
        rows = None if len(hits.rows) == segment.rows else hits.positions().astype(np.int32)
        return make_strip(self.plan, rows, codes, columns[len(self.plan.keys) :], len(self.groups))


class Round(NamedTuple):
    """Which structures of a stream are to be tidied yet, since it was seen at a commit."""

    seq: int
    left: list[Shape]


class StructureCache:
    """The structures in use, up to a number of bytes."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """Keep about so many bytes."""
        self._limit = limit
        self._lock = threading.Lock()
        self._structures: OrderedDict[Shape, Structure] = OrderedDict()
        self._rounds: dict[int, Round] = {}

    def structure(self, key: Shape, make: Callable[[], Structure]) -> Structure:
        """The structure of that key, made if it is not there."""
        with self._lock:
            structure = self._structures.get(key)
            if structure is None:
                structure = self._structures[key] = make()
            self._structures.move_to_end(key)
            return structure

    def tidy(self, state: StreamState) -> None:
        """Forget what the next structure of the stream keeps of segments that are gone; not if it is in use.

        A structure that nobody asks for any more would keep them. All at once they would take long where they are many.
        """
        stream = state.stream.id
        current = self._rounds.get(stream)
        if current is None or (not current.left and current.seq != state.seq):
            with self._lock:
                current = self._rounds[stream] = Round(state.seq, [key for key in self._structures if key[0] == stream])
        if not current.left:
            return
        try:
            structure = self._structures.get(current.left.pop())
        except IndexError:
            return  # another thread took the last one
        if structure is not None and structure.lock.acquire(blocking=False):
            try:
                structure.keep_only(state)
            finally:
                structure.lock.release()

    def trim(self) -> None:
        """Let go of something while all structures take too much: of panes, then of what was not used for longest."""
        with self._lock:
            structures = list(self._structures.values())
        if sum(structure.nbytes for structure in structures) <= self._limit:
            return
        for structure in structures:
            with structure.lock:
                structure.forget_panes()
        with self._lock:
            while sum(kept.nbytes for kept in self._structures.values()) > self._limit and len(self._structures) > 1:
                self._structures.popitem(last=False)
