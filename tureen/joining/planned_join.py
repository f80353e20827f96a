"""A continuous join whose plan can change: the eddy of `continuous_join`, or a tree with intermediate results.

Between two blocks of new tuples a plan can be replaced: a tree starts with the tuples that are there, and the eddy has
no state. A tree that fails or grows too large is replaced by the eddy, which then joins the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tureen.errors import QueryFailed
from tureen.joining import join_forest
from tureen.joining.continuous_join import ContinuousJoin, KeepRows, ReadStem
from tureen.joining.join_forest import ForestRoot, JoinForest
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedPiece
from tureen.joining.plan_inputs import PlanInputs, Reach
from tureen.joining.plans.plan_choice import PlanChoice
from tureen.joining.plans.plan_root import EVERYBODY
from tureen.joining.plans.plan_store import FOREVER, Wants
from tureen.joining.plans.tree_plan import TreePlan
from tureen.joining.stem import Stem
from tureen.plan_hint import EDDY, NO_HINT, PlanHint


class PlannedJoin:
    """Joins new tuples for all consumers of one shared join, by the plan of a hint or of the least observed cost."""

    def __init__(self, eddy: ContinuousJoin, hint: PlanHint = NO_HINT, forest: JoinForest | None = None) -> None:
        """Start with the plan of the hint or, without one, with the eddy; joins of a forest share sub-joins."""
        self.eddy, self.hint = eddy, hint
        self.join, self.names, self.router, self.consumers = eddy.join, eddy.names, eddy.router, eddy.consumers
        self.setting = eddy.setting
        self.forest = JoinForest() if forest is None else forest
        self.lock = self.forest.lock
        """Held by whoever calls the methods of this join, or of another one of the forest."""
        self._rest = PlanInputs.of([(eddy.join, (None,) * len(eddy.names))]).roots[0].rest
        self._choice = PlanChoice(hint.plan, hint.jit, len(self.names))
        self._is_selective = True
        """Whether the tree has only tuples that consumers want; not after consumers have come and gone."""
        self._seen: tuple[int, Reach] = (-1, ())
        self.refused: str | None = None
        """Why the eddy joins although the plan should be a tree."""

    @property
    def plan(self) -> str:
        """The name of the plan at work."""
        return EDDY if self.refused else self._choice.plan

    @property
    def tree_plan(self) -> tuple[str, bool | None]:
        """See `PlannedTree`."""
        return self._choice.plan, self._choice.jit

    @property
    def tree(self) -> TreePlan | None:
        """The plan with its tree; None while the eddy joins, or before the first new tuple."""
        return None if self.forest.number_of(self) is None else self.forest.plan

    def reach(self) -> Reach:
        """See `PlannedTree`."""
        return tuple(self.consumers.reach(number) for number in range(len(self.names)))

    def wants(self, number: int, stem: Stem, rows: Numbers) -> Wants:
        """See `PlannedTree`; if consumers come and go, they may want all tuples."""
        wants = np.full(len(rows), EVERYBODY)
        if self._is_selective:
            lineages = self.eddy.lineages(number, stem, rows)
            wants = np.zeros(len(rows), np.uint64)
            wants[lineages.nonempty] = lineages.folded[lineages.nonempty]
        return wants

    def restart(self) -> None:
        """Forget the state: new tuples were left out, or nobody follows the join any more."""
        if self.tree is not None:
            self.forest.drop()

    def least_end(self, end: Mapping[int, int]) -> dict[int, int]:
        """An end for the next block that is not before what joins with common sub-joins have read."""
        return self.forest.least_end(self, end)

    def purge(self, number: int, ids: Numbers) -> None:
        """Forget tuples of an input that no later result contains."""
        root, tree = self.forest.number_of(self), self.tree
        if root is not None and tree is not None and len(ids):
            tree.purge(root, self.forest.inputs_of(root)[number], ids)

    def join_new(
        self, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int], keep: KeepRows | None = None
    ) -> list[JoinedPiece]:
        """See `ContinuousJoin.join_new`."""
        if self.plan == EDDY:
            self.restart()
            pieces = self.eddy.join_new(stem_of, begin, end, keep)
            totals = self.router.totals()
            self._choice.observe_eddy(totals["tuples"], totals["visits"], sum(map(len, pieces)), self.reach())
            return pieces
        self._check_consumers()
        if not self.forest.can_take(self):
            self.forest = JoinForest(self.lock)
        try:
            root = self.forest.advance(self, stem_of, begin, end, keep)
            pieces = [] if root is None else list(self._pieces(root, stem_of, end))
            self._check_size()
        except QueryFailed as error:
            if len(self.forest) > 1:
                # Perhaps because of another join: this one continues with a plan of its own.
                self.forest.drop()
                self.forest = JoinForest(self.lock)
            else:
                self.forest.drop()
                self.refused = str(error)
            root = None
        if root is None:
            return self.eddy.join_new(stem_of, begin, end, keep)
        self._count(begin, end)
        return pieces

    def _check_size(self) -> None:
        tree = self.tree
        if tree is not None and tree.tuples > join_forest.STATE_TUPLES:
            raise QueryFailed(f"the plan holds {tree.tuples:,} tuples, more than {join_forest.STATE_TUPLES:,}")

    def _count(self, begin: Mapping[int, int], end: Mapping[int, int]) -> None:
        """Count new tuples, and what the tree has made of all so far."""
        for name, relation in zip(self.names, self.join.relations, strict=True):
            if relation.stream_id is not None:
                self.router.admit(name, end[relation.stream_id] - begin[relation.stream_id])
        number, tree = self.forest.number_of(self), self.tree
        if number is not None and tree is not None:
            counts = tree.counts[number]
            self._choice.observe_tree(counts.arrived, tree.made + counts.emitted)

    def _check_consumers(self) -> None:
        """Start again if a new consumer may want tuples that the tree does not have."""
        reach = self.reach()
        if (self.consumers.added, reach) == self._seen:
            return
        added, before = self._seen
        self._seen = self.consumers.added, reach
        if self.tree is None:
            return
        if self.consumers.added != added and self._is_selective:
            self._is_selective = False
            self.forest.drop()
        elif any(_is_longer(now, then) for now, then in zip(reach, before, strict=True)):
            self.forest.drop()

    def _pieces(self, root: ForestRoot, stem_of: ReadStem, end: Mapping[int, int]) -> Iterator[JoinedPiece]:
        """The joined tuples that the tree has produced, and those of late tuples, by the eddy."""
        joined, late, earliest = root.take()
        ends = [0 if relation.stream_id is None else end[relation.stream_id] for relation in self.join.relations]
        for ids in joined:
            stems = [
                stem_of(number, (0, last), None if earliest == FOREVER else self.eddy.earliest(number, earliest))
                for number, last in enumerate(ends)
            ]
            piece = self.eddy.piece_of(stems, ids, self._rest)
            if piece is not None:
                yield piece
        for tuples in late:
            source = stem_of(tuples.origin, (int(tuples.ids.min()), int(tuples.ids.max()) + 1), None)
            rows = source.rows_of(tuples.ids)
            yield from self.eddy.pieces_of(tuples.origin, tuples.limits, stem_of, source, np.sort(rows[rows >= 0]))


def _is_longer(reach: int | None, before: int | None) -> bool:
    return before is not None and (reach is None or reach > before)
