"""What a process keeps of partial aggregates: one structure for all queries of one SELECT-FROM-WHERE."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

import numpy as np

from tureen.aggregates.groups import Groups
from tureen.aggregates.plan import Plan
from tureen.aggregates.strip import Strip, make_strip
from tureen.aggregates.values import evaluate
from tureen.errors import QueryFailed
from tureen.matching import Selector
from tureen.pot.queries import Registered
from tureen.results.gather import gather_segment
from tureen.results.segment import Segment
from tureen.schema import Schema

KEPT_BYTES = 1 << 29
"""About how many bytes of partial aggregates a process keeps; the least recently used go first."""

MOST_DISTINCT = 1 << 17
"""From so many DISTINCT values on they are counted from the rows."""

_MANY_GROUPS = 1 << 16
"""From so many groups on, those that no tuple has any more are worth forgetting."""


class TooManyValues(Exception):
    """Values that are counted once are nearly all different: keeping them would be keeping the rows."""


class Structure:
    """The partial aggregates of one SELECT-FROM-WHERE: a strip for each segment, and the groups they share.

    Use it only while holding its lock.
    """

    def __init__(self, plan: Plan) -> None:
        """Start with nothing; strips are made when they are first asked for."""
        self.plan = plan
        self.lock = threading.Lock()
        self.groups = Groups([key.type for key in plan.keys])
        self._strips: dict[tuple[int, ...], Strip] = {}
        self._raised: dict[tuple[int, ...], QueryFailed] = {}
        self.grew = False
        """Whether something was made since this was last looked at."""

    def strip(self, segment: Segment, schema: Schema, query: Registered, selector: Selector) -> Strip:
        """The strip of a segment; raises QueryFailed where an expression raises on one of its tuples."""
        if self.plan.distinct is not None and len(self.groups) > MOST_DISTINCT:
            self._strips = {}
            raise TooManyValues
        found = self._strips.get(segment.key)
        if found is None and segment.key not in self._raised:
            try:
                found = self._strips[segment.key] = self._make(segment, schema, query, selector)
            except QueryFailed as error:
                # Tuples do not change: it would raise again.
                self._raised[segment.key] = error
        if found is None:
            raise self._raised[segment.key]
        return found

    def keep_only(self, segments: Iterable[Segment]) -> None:
        """Forget what belongs to segments that are gone, and groups that no tuple has any more."""
        live = {segment.key for segment in segments}
        if not self._strips.keys() <= live:
            self._strips = {key: strip for key, strip in self._strips.items() if key in live}
        self._raised = {key: error for key, error in self._raised.items() if key in live}
        # Where values are counted once, there being too many is worth remembering.
        if self.plan.distinct is None and len(self.groups) > max(
            _MANY_GROUPS, 2 * sum(len(strip.codes) for strip in self._strips.values())
        ):
            self.groups, self._strips = Groups([key.type for key in self.plan.keys]), {}

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return 100 * len(self.groups) + sum(strip.nbytes for strip in self._strips.values())

    def _make(self, segment: Segment, schema: Schema, query: Registered, selector: Selector) -> Strip:
        self.grew = True
        hits = segment.hits(query, selector, 0, segment.rows)
        values = [measure.value for measure in self.plan.measures]
        expressions = [*self.plan.keys, *values]
        names = sorted({name for one in expressions for name in one.columns}) or [schema.time_column]
        columns = evaluate(expressions, gather_segment(schema, names, hits))
        codes = self.groups.codes(columns[: len(self.plan.keys)], len(hits.rows))
        rows = None if len(hits.rows) == segment.rows else hits.positions().astype(np.int32)
        return make_strip(self.plan, rows, codes, columns[len(self.plan.keys) :], len(self.groups))


class Kept:
    """The structures in use, up to a number of bytes."""

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        """Keep about so many bytes."""
        self._limit = limit
        self._lock = threading.Lock()
        self._structures: OrderedDict[Hashable, Structure] = OrderedDict()

    def structure(self, key: Hashable, make: Callable[[], Structure]) -> Structure:
        """The structure of that key, made if it is not there."""
        with self._lock:
            found = self._structures.get(key)
            if found is None:
                found = self._structures[key] = make()
            self._structures.move_to_end(key)
            return found

    def trim(self, used: Structure) -> None:
        """Let go of the least recently used structures, if one that was used made all of them take too much."""
        if not used.grew:
            return
        used.grew = False
        with self._lock:
            sizes = {key: structure.nbytes for key, structure in self._structures.items()}
            total = sum(sizes.values())
            while total > self._limit and len(self._structures) > 1:
                key, _ = self._structures.popitem(last=False)
                total -= sizes[key]
