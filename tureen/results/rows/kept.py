"""The cache of partial aggregates: one structure for all queries of one SELECT-FROM-WHERE."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import NamedTuple

import numpy as np

from tureen.aggregates.expression_values import evaluate
from tureen.aggregates.groups import GroupNumbers
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Strip, make_strip
from tureen.errors import DamagedFile, QueryFailed
from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.results.rows.gather import gather_segment
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.schema import Schema

Key = tuple[int, ...] | str
"""The key of a segment, or the path of a join run."""

Shape = tuple[int, str]
"""The key of a structure: its stream, or minus the id of its join, and the shape of its queries."""

KEPT_BYTES = 1 << 29
"""The approximate size limit of the partial aggregates of a process; the least recently used are dropped."""

MOST_DISTINCT = 1 << 17
"""The maximum number of DISTINCT values that are cached; beyond, they are counted from the rows."""

_MANY_GROUPS = 1 << 16
"""The number of groups from which on unused groups are dropped."""


class Structure:
    """The partial aggregates of one SELECT-FROM-WHERE: a strip for each segment, and the groups they share.

    All but `nbytes` must be used only while holding its lock.
    """

    def __init__(self, plan: Plan) -> None:
        """Start empty; strips are computed on first use."""
        self.plan = plan
        self.lock = threading.Lock()
        self.groups = GroupNumbers([key.type for key in plan.keys])
        self.nbytes = 0
        """Its approximate size in memory."""
        self._strips: dict[Key, Strip] = {}
        self._uncacheable: frozenset[Key] = frozenset()
        """Segments without a strip, because an expression raises an error or there are too many values."""

    def strips(
        self, state: StreamState, numbers: Sequence[int], query_input: RegisteredInput, selector: Selector
    ) -> list[tuple[int, Strip]] | None:
        """The strips of segments; None if one of them cannot have a strip.

        That does not mean that the query fails: the tuple that raises the error may be outside the window.
        """
        self.drop_replaced(state)
        strips: list[tuple[int, Strip]] = []
        for number in numbers:
            segment = state.segments[number]
            strip = self.strip(segment.key, partial(self._compute, segment, state.stream.schema, query_input, selector))
            if strip is None:
                return None
            strips.append((number, strip))
        return strips

    def strip(self, key: Key, compute: Callable[[], Strip]) -> Strip | None:
        """The strip of a key, computed if it is not cached; None if it cannot have one."""
        if key not in self._strips and key not in self._uncacheable:
            self._add(key, compute)
        return None if key in self._uncacheable else self._strips[key]

    def has_strip(self, key: Key) -> bool:
        """Whether a strip is cached."""
        return key in self._strips

    def account(self) -> None:
        """Update `nbytes`."""
        self.nbytes = 100 * len(self.groups) + sum(strip.nbytes for strip in self._strips.values())

    def drop_panes(self) -> None:
        """Drop the panes, which are the cheapest to recompute."""
        for strip in self._strips.values():
            strip.by_time.clear()
            strip.by_row.clear()
        self.account()

    def _add(self, key: Key, compute: Callable[[], Strip]) -> None:
        try:
            self._strips[key] = compute()
        except (QueryFailed, DamagedFile):
            # Tuples do not change, so it would fail again, perhaps outside the window.
            self._uncacheable |= {key}
        if self.plan.distinct is not None and len(self.groups) > MOST_DISTINCT:
            # If nearly all values are distinct, a cache of them is as large as the rows.
            self._uncacheable |= self._strips.keys()
            self._clear()
        self.account()

    def drop_replaced(self, state: StreamState) -> None:
        """Drop the strips of segments that no longer exist."""
        self.keep_only({segment.key for segment in state.segments})

    def keep_only(self, live: Set[Key]) -> None:
        """Drop all strips but those of some keys, and all groups if most of them are unused."""
        self._uncacheable &= live
        if not self._strips.keys() <= live:
            self._strips = {key: strip for key, strip in self._strips.items() if key in live}
            self.account()
        if len(self.groups) > max(_MANY_GROUPS, 2 * sum(len(strip.codes) for strip in self._strips.values())):
            self._clear()

    def _clear(self) -> None:
        self.groups, self._strips = GroupNumbers([key.type for key in self.plan.keys]), {}
        self.account()

    def _compute(self, segment: Segment, schema: Schema, query_input: RegisteredInput, selector: Selector) -> Strip:
        hits = segment.hits(query_input, selector, 0, segment.rows)
        values = [measure.value for measure in self.plan.measures]
        expressions = [*self.plan.keys, *values]
        names = sorted({name for expression in expressions for name in expression.columns}) or [schema.time_column]
        columns = evaluate(expressions, gather_segment(schema, names, hits))
        codes = self.groups.codes(columns[: len(self.plan.keys)], len(hits.rows))
        rows = None if len(hits.rows) == segment.rows else hits.positions().astype(np.int32)
        return make_strip(self.plan, rows, codes, columns[len(self.plan.keys) :], len(self.groups))


class CleanupRound(NamedTuple):
    """The structures of a stream that are not cleaned up yet, since the stream was read at a commit."""

    seq: int
    pending: list[Shape]


class StructureCache:
    """The structures of all streams, up to a number of bytes.

    Not a `BoundedCache`, which measures a value when it is added and then drops others: a structure grows while it is
    used, is kept however large it is if it is the only one, and loses its panes before any structure is dropped.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """Limit the cache to about that number of bytes."""
        self._limit = limit
        self._lock = threading.Lock()
        self._structures: OrderedDict[Shape, Structure] = OrderedDict()
        self._rounds: dict[int, CleanupRound] = {}

    def structure(self, key: Shape, create: Callable[[], Structure]) -> Structure:
        """The structure of that key, created if it does not exist."""
        with self._lock:
            structure = self._structures.get(key)
            if structure is None:
                structure = self._structures[key] = create()
            self._structures.move_to_end(key)
            return structure

    def peek(self, key: Shape) -> Structure | None:
        """The structure of that key, if it exists."""
        return self._structures.get(key)

    def clean_up(self, state: StreamState) -> None:
        """Drop strips of replaced segments from the next structure of the stream, unless it is in use.

        Structures that are no longer used would keep such strips. Each call handles one structure, because there may be
        many of them.
        """
        stream = state.stream.id
        current = self._rounds.get(stream)
        if current is None or (not current.pending and current.seq != state.seq):
            with self._lock:
                pending = [key for key in self._structures if key[0] == stream]
                current = self._rounds[stream] = CleanupRound(state.seq, pending)
        if not current.pending:
            return
        try:
            structure = self._structures.get(current.pending.pop())
        except IndexError:
            return  # another thread took the last key
        if structure is not None and structure.lock.acquire(blocking=False):
            try:
                structure.drop_replaced(state)
            finally:
                structure.lock.release()

    def trim(self) -> None:
        """Drop panes, then the least recently used structures, while the limit is exceeded."""
        with self._lock:
            structures = list(self._structures.values())
        if sum(structure.nbytes for structure in structures) <= self._limit:
            return
        for structure in structures:
            with structure.lock:
                structure.drop_panes()
        with self._lock:
            while sum(entry.nbytes for entry in self._structures.values()) > self._limit and len(self._structures) > 1:
                self._structures.popitem(last=False)
