"""A continuous join whose plan can change: the eddy of `continuous_join`, or a tree with intermediate results.

Between two blocks of new tuples a plan can be replaced: a tree starts with the tuples that are there, and the eddy has
no state. A tree that fails or grows too large is replaced by the eddy, which then joins the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tureen.errors import QueryFailed
from tureen.joining.continuous_join import ContinuousJoin, KeepRows, ReadStem
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedPiece
from tureen.joining.plan_keys import PlanKeys
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.plan_choice import PlanChoice
from tureen.joining.plans.plan_shape import bushy, left_deep, shown_shape
from tureen.joining.plans.plan_store import NEVER, NewTuples, Wants
from tureen.joining.plans.tree_plan import TreePlan
from tureen.joining.stem import Ids, Stem
from tureen.plan_hint import EDDY, LEFT_DEEP, NO_HINT, PlanHint

STATE_TUPLES = 1 << 22
"""The most tuples and intermediate results of a plan; beyond, the eddy joins without a state."""

INSERTED_TUPLES = 8_192
"""The most new tuples that go up a tree together."""


class _NewRows(NamedTuple):
    """New tuples of an input."""

    origin: int
    limits: Sequence[Ids]
    stem: Stem
    rows: Numbers
    times: Numbers


class PlannedJoin:
    """Joins new tuples for all consumers of one shared join, by the plan that a hint or the observed costs tell."""

    def __init__(self, eddy: ContinuousJoin, hint: PlanHint = NO_HINT) -> None:
        """Start with the plan of the hint or, without one, with the eddy."""
        self.eddy, self.hint = eddy, hint
        self.join, self.names, self.router, self.consumers = eddy.join, eddy.names, eddy.router, eddy.consumers
        self.setting = eddy.setting
        self._keys = PlanKeys.of(eddy.join)
        self.tree: TreePlan | None = None
        """The tree, with its state; None while the eddy joins, or before the first new tuple."""
        self._choice = PlanChoice(hint.plan, hint.jit, len(self.names))
        self._is_selective = True
        """Whether the tree has only tuples that consumers want; given up when consumers come and go."""
        self._seen: tuple[int, tuple[int | None, ...]] = (-1, ())
        self.refused: str | None = None
        """Why there is no tree although there should be one."""

    @property
    def plan(self) -> str:
        """The name of the plan at work."""
        return EDDY if self.refused else self._choice.plan

    def restart(self) -> None:
        """Forget the state: new tuples were left out."""
        self.tree = None

    def purge(self, number: int, ids: Numbers) -> None:
        """Forget tuples of an input that no later result contains."""
        if self.tree is not None and len(ids):
            self.tree.purge(number, ids)

    def join_new(
        self, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int], keep: KeepRows | None = None
    ) -> list[JoinedPiece]:
        """See `ContinuousJoin.join_new`."""
        if self.plan == EDDY:
            self.tree = None
            pieces = self.eddy.join_new(stem_of, begin, end, keep)
            totals = self.router.totals()
            self._choice.observe_eddy(totals["tuples"], totals["visits"], sum(map(len, pieces)), self._reach)
            return pieces
        self._check_consumers()
        try:
            pieces = list(self._join_by_tree(stem_of, begin, end, keep))
            if self.tree is not None and self.tree.tuples > STATE_TUPLES:
                raise QueryFailed(f"the plan holds {self.tree.tuples:,} tuples, more than {STATE_TUPLES:,}")
        except QueryFailed as error:
            self.tree, self.refused = None, str(error)
            return self.eddy.join_new(stem_of, begin, end, keep)
        if self.tree is not None:
            self._choice.observe_tree(self.tree.arrived, self.tree.made + self.tree.emitted)
        return pieces

    @property
    def _reach(self) -> list[int | None]:
        return [self.consumers.reach(number) for number in range(len(self.names))]

    def _check_consumers(self) -> None:
        """Start again if a new consumer may want tuples that the tree does not have."""
        reach = tuple(self._reach)
        if (self.consumers.added, reach) == self._seen:
            return
        added, before = self._seen
        self._seen = self.consumers.added, reach
        is_new = self.consumers.added != added
        if self.tree is None:
            return
        if is_new and self._is_selective:
            self._is_selective = False
            self.tree = None
        elif any(_is_longer(now, then) for now, then in zip(reach, before, strict=True)):
            self.tree = None

    def _join_by_tree(
        self, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int], keep: KeepRows | None
    ) -> Iterator[JoinedPiece]:
        marks = dict(begin)
        blocks: list[_NewRows] = []
        for stream in self.join.streams:
            # A joined tuple with several new tuples of the stream is produced by the first of them: the last to arrive.
            for origin in reversed(self.join.inputs_of(stream)) if end[stream] > marks[stream] else ():
                limits = self.eddy.limits(origin, (marks[stream], end[stream]), marks)
                source = stem_of(origin, limits[origin], None)
                rows = source.rows_within()
                if keep is not None:
                    rows = keep(origin, source, rows)
                times = source.times_at(rows)
                assert times is not None
                self.router.admit(self.names[origin], len(rows))
                blocks.append(_NewRows(origin, limits, source, rows, times))
            marks[stream] = end[stream]
        blocks = [block for block in blocks if len(block.rows)]
        if not blocks:
            return
        if self.tree is None:
            self.tree = self._start(stem_of, begin, blocks)
        for block in blocks:
            yield from self._insert(self.tree, block, stem_of)

    def _start(self, stem_of: ReadStem, begin: Mapping[int, int], blocks: Sequence[_NewRows]) -> TreePlan:
        """A tree with the tuples that new ones can join."""
        reach = self._reach
        shape = (left_deep if self._choice.plan == LEFT_DEEP else bushy)(self._keys.graph)
        has_feedback = self._choice.jit is not False
        switch = FeedbackSwitch() if self._choice.jit is None else None
        tree = TreePlan(self._keys.graph, shape, reach, has_feedback=has_feedback, switch=switch)
        # Of tuples that are far apart, only the later ones join by the tree.
        longest = max((each for each in reach if each is not None), default=0)
        first = min(int(block.times.min()) for block in blocks)
        horizon = max(first, max(int(block.times.max()) for block in blocks) - longest)
        if None in [reach[number] for number in range(len(reach)) if number not in self._keys.graph.tables]:
            horizon = NEVER
        tree.prime({number: self._old(number, stem_of, begin, horizon) for number in range(len(reach))}, horizon)
        return tree

    def _old(self, number: int, stem_of: ReadStem, begin: Mapping[int, int], horizon: int) -> NewTuples:
        stream, reach = self.join.relations[number].stream_id, self.consumers.reach(number)
        ids = (0, 0) if stream is None else (0, begin[stream])
        earliest = None if reach is None or horizon == NEVER else horizon - reach
        stem = stem_of(number, ids, earliest)
        rows = stem.rows_within()
        if len(rows) > STATE_TUPLES:
            raise QueryFailed(f"input '{self.names[number]}' has {len(rows):,} tuples, more than {STATE_TUPLES:,}")
        times = stem.times_at(rows) if stream is not None and earliest is not None else None
        if times is not None and earliest is not None:
            rows = rows[times >= earliest]
        return self._wanted(number, stem, rows)

    def _wanted(self, number: int, stem: Stem, rows: Numbers) -> NewTuples:
        """Tuples with keys that some consumer wants; if consumers come and go, all with keys."""
        if not self._is_selective:
            return self._keys.tuples(number, stem, rows, np.full(len(rows), _EVERYBODY))
        lineages = self.eddy.lineages(number, stem, rows)
        wants: Wants = lineages.folded
        kept = lineages.nonempty
        return self._keys.tuples(number, stem, rows[kept], wants[kept])

    def _insert(self, tree: TreePlan, block: _NewRows, stem_of: ReadStem) -> Iterator[JoinedPiece]:
        for begin in range(0, len(block.rows), INSERTED_TUPLES):
            part = slice(begin, begin + INSERTED_TUPLES)
            rows, is_late = block.rows[part], block.times[part] < tree.horizon
            earliest = int(block.times[part][~is_late].min(initial=_FOREVER))
            ids = tree.insert(block.origin, self._wanted(block.origin, block.stem, rows))
            if ids.shape[1]:
                stems = [
                    stem_of(number, (0, limit[1]), self.eddy.earliest(number, earliest))
                    for number, limit in enumerate(block.limits)
                ]
                piece = self.eddy.piece_of(stems, ids, self._keys.rest)
                if piece is not None:
                    yield piece
            if is_late.any():
                yield from self.eddy.pieces_of(block.origin, block.limits, stem_of, block.stem, rows[is_late])

    def describe(self) -> dict[str, object]:
        """The plan, its states and what feedback did."""
        shown: dict[str, object] = {"plan": self.plan, "chosen": "by cost" if self.hint.plan is None else "by hint"}
        if self.refused:
            shown["why"] = self.refused
        tree = self.tree
        if tree is None:
            return shown
        return shown | {
            "shape": shown_shape(tree.shape, self.names),
            "nodes": [
                {
                    "node": shown_shape(shape, self.names),
                    "tuples": node.size,
                    "made": node.made,
                    "avoided": None if tree.demand is None else tree.avoided(shape),
                }
                for shape, node in tree.nodes.items()
            ],
            "bytes": tree.bytes,
            "intermediate_results": tree.made,
            "jit": {
                "on": tree.demand is not None,
                "suspended": tree.suspended,
                "resumed": tree.resumed,
                "purged": tree.unresumable,
                "blacklists": {} if tree.demand is None else dict(zip(self.names, tree.store.waiting(), strict=True)),
            },
        }

    def counts(self) -> dict[str, int]:
        """Numbers for metrics."""
        tree = self.tree
        if tree is None:
            return dict.fromkeys(PLAN_COUNTS, 0)
        waiting = 0 if tree.demand is None else sum(tree.store.waiting())
        numbers = (1, tree.tuples, tree.made, tree.suspended, tree.resumed, waiting, tree.purged, tree.unresumable)
        return dict(zip(PLAN_COUNTS, numbers, strict=True))


PLAN_COUNTS = (
    "trees",
    "plan_tuples",
    "intermediate_results",
    "suspended",
    "resumed",
    "blacklisted",
    "plan_purged",
    "blacklist_purged",
)


def _is_longer(reach: int | None, before: int | None) -> bool:
    return before is not None and (reach is None or reach > before)


_EVERYBODY = np.uint64(2**64 - 1)
_FOREVER = np.iinfo(np.int64).max
