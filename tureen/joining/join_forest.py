"""A forest: continuous joins whose trees form one plan, so that common sub-joins are computed once.

Each join reads its inputs up to an end of its own. The tuples of an input that several joins share are inserted by the
join that reads them first; what they lead to for the others is kept until these read. A join that is not in the plan
yet, or that the others have overtaken, is joined by its eddy and then takes part.

The plan can be dropped at any time: the next block of each join starts another one, from the tuples that are there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from tureen.errors import QueryFailed
from tureen.joining.continuous_join import KeepRows, ReadStem
from tureen.joining.join_input import Flags, Numbers
from tureen.joining.plan_inputs import PlanInputs, Reach
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.plan_root import MOST_ROOTS, PlanRoot, bits_of_root, wants_of_root
from tureen.joining.plans.plan_shape import PlanShape, common_tree, tree_of
from tureen.joining.plans.plan_store import FOREVER, NEVER, NewTuples, Wants
from tureen.joining.plans.tree_plan import TreePlan
from tureen.joining.shared_join import SharedJoin
from tureen.joining.stem import Ids, Stem
from tureen.plan_hint import LEFT_DEEP

STATE_TUPLES = 1 << 22
"""The maximum number of tuples and intermediate results of a plan; above it, the eddy joins, without a state."""

UNTAKEN_TUPLES = 1 << 20
"""The maximum number of joined tuples that wait for a join to read; above it, the others continue without it."""

INSERTED_TUPLES = 8_192
"""The most new tuples that go up a tree together."""


class PlannedTree(Protocol):
    """A join with a tree, as a forest sees it."""

    @property
    def join(self) -> SharedJoin:
        """The relations and comparisons."""

    @property
    def tree_plan(self) -> tuple[str, bool | None]:
        """The kind of its tree, and whether tuples without partners are suspended; None if that is left to a switch."""

    def reach(self) -> Reach:
        """How long a tuple of each input joins later ones."""

    def wants(self, number: int, stem: Stem, rows: Numbers) -> Wants:
        """Bits of the queries that may want tuples of an input."""


@dataclass(frozen=True)
class LateTuples:
    """New tuples of an input before the horizon, and the tuples of each input that were in the plan before them."""

    origin: int
    ids: Numbers
    limits: Sequence[Ids]


@dataclass(eq=False)
class ForestRoot:
    """A join of the forest, and its joined tuples that were not taken yet."""

    planned: PlannedTree
    reach: Reach
    end: dict[int, int]
    """For each stream, the tuple up to which it has read."""
    joined: list[Numbers] = field(default_factory=list)
    """Joined tuples, as a line of tuple ids for each input."""
    late: list[LateTuples] = field(default_factory=list)
    earliest: int = FOREVER
    """The time of the earliest of the tuples that led to them."""

    @property
    def untaken(self) -> int:
        """The number of joined tuples that it has not taken yet."""
        return sum(rows.shape[1] for rows in self.joined)

    def take(self) -> tuple[list[Numbers], list[LateTuples], int]:
        """The joined tuples that the inserts since the last call have produced."""
        taken = self.joined, self.late, self.earliest
        self.joined, self.late, self.earliest = [], [], FOREVER
        return taken


class JoinForest:
    """The plan of some joins. Its caller holds the lock."""

    def __init__(self, lock: threading.Lock | None = None) -> None:
        """Start without joins."""
        self.lock = threading.Lock() if lock is None else lock
        """Joins that may share a plan are advanced one after the other."""
        self.plan: TreePlan | None = None
        self._inputs = PlanInputs((), (), ())
        self._roots: list[ForestRoot] = []
        self._read: list[int] = []
        """For each input of the plan, the tuple up to which it was inserted."""

    def __len__(self) -> int:
        """The number of joins in the plan."""
        return len(self._roots)

    def number_of(self, planned: PlannedTree) -> int | None:
        """The number of a join in the plan; None if it is not in it."""
        return next((number for number, root in enumerate(self._roots) if root.planned is planned), None)

    def inputs_of(self, number: int) -> tuple[int, ...]:
        """The inputs of the plan that are those of a join."""
        return self._inputs.roots[number].inputs

    def drop(self) -> None:
        """Forget the plan."""
        self.plan, self._roots, self._read = None, [], []

    def can_take(self, planned: PlannedTree) -> bool:
        """Whether a join is in the plan, or has a sub-join in common with those in it, within the same windows."""
        if not self._roots or self.number_of(planned) is not None:
            return True
        reach = planned.reach()
        if len(self._roots) == MOST_ROOTS or None in (*_limits(planned, reach), *self._limits()):
            return False
        roots = self._inputs_with(planned, reach).roots
        return common_tree(roots[-1].graph, self._trees([root.graph for root in roots[:-1]])) is not None

    def _limits(self) -> list[int | None]:
        return [limit for root in self._roots for limit in _limits(root.planned, root.reach)]

    def least_end(self, planned: PlannedTree, end: Mapping[int, int]) -> dict[int, int]:
        """An end for the next block of a join that is not before what others have read."""
        number = self.number_of(planned)
        ends = dict(end)
        if number is not None:
            for relation, plan_input in zip(planned.join.relations, self.inputs_of(number), strict=True):
                if relation.stream_id is not None:
                    ends[relation.stream_id] = max(ends[relation.stream_id], self._read[plan_input])
        return ends

    def advance(
        self, planned: PlannedTree, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int],
        keep: KeepRows | None = None,
    ) -> ForestRoot | None:  # fmt: skip
        """Insert the new tuples of a join; its root, or None if its eddy must join this block.

        Raises QueryFailed if there are too many tuples.
        """
        if any(root.untaken > UNTAKEN_TUPLES for root in self._roots if root.planned is not planned):
            self.drop()
        number = self.number_of(planned)
        root = None if number is None else self._roots[number]
        if root is not None and (root.end != begin or self.least_end(planned, end) != end):
            self.drop()
            root = None
        if root is None and self.plan is not None and not self._is_at(planned, begin):
            if self._insert(planned, stem_of, end):
                self._enter(planned, stem_of, end, self.plan.horizon)
            return None
        if root is None:
            horizon = _first_horizon(planned, stem_of, begin, end) if self.plan is None else self.plan.horizon
            if horizon is None:
                return None
            root = self._enter(planned, stem_of, begin, horizon)
        self._insert(planned, stem_of, end, keep)
        root.end = dict(end)
        return root

    def _inputs_with(self, planned: PlannedTree, reach: Reach) -> PlanInputs:
        """The inputs of a plan with another join."""
        joins = [(root.planned.join, root.reach) for root in self._roots]
        return PlanInputs.of([*joins, (planned.join, reach)])

    def _shared(self, planned: PlannedTree) -> list[tuple[int, int]]:
        """The inputs of a join that are in the plan, each with that of the plan."""
        number = self.number_of(planned)
        inputs = self._inputs if number is not None else self._inputs_with(planned, planned.reach())
        own = inputs.roots[-1 if number is None else number].inputs
        return [(index, plan_input) for index, plan_input in enumerate(own) if plan_input < len(self._read)]

    def _is_at(self, planned: PlannedTree, marks: Mapping[int, int]) -> bool:
        """Whether the inputs that a join shares were read up to marks."""
        streams = [relation.stream_id for relation in planned.join.relations]
        return all(
            stream is None or self._read[plan_input] == marks[stream]
            for stream, plan_input in ((streams[index], plan_input) for index, plan_input in self._shared(planned))
        )

    def _trees(self, graphs: Sequence[JoinGraph]) -> list[tuple[JoinGraph, PlanShape]]:
        shapes = [] if self.plan is None else [root.shape for root in self.plan.roots]
        return list(zip(graphs, shapes, strict=True))

    def _enter(self, planned: PlannedTree, stem_of: ReadStem, marks: Mapping[int, int], horizon: int) -> ForestRoot:
        """Start a plan with another join, which has read up to marks."""
        before, reach = self.plan, planned.reach()
        inputs = self._inputs_with(planned, reach)
        *graphs, graph = [root.graph for root in inputs.roots]
        plan, _ = planned.tree_plan
        trees, own = self._trees(graphs), inputs.roots[-1].inputs
        shapes = [*(shape for _, shape in trees), tree_of(graph, own, trees, is_left_deep=plan == LEFT_DEEP)]
        members = [*(root.planned for root in self._roots), planned]
        roots = [
            PlanRoot(
                root_inputs.graph, root_inputs.inputs, shape, bits_of_root(number, len(members)), member.tree_plan[1]
            )
            for number, (root_inputs, shape, member) in enumerate(zip(inputs.roots, shapes, members, strict=True))
        ]
        tree = TreePlan(roots, inputs.reach, switch=FeedbackSwitch() if None in {root.jit for root in roots} else None)
        root = ForestRoot(planned, reach, dict(marks))
        kept = (
            {}
            if before is None
            else {plan_input: before.store.tuples_of(plan_input) for plan_input in range(len(self._read))}
        )
        if len(roots) == 2:
            # A single join had all bits.
            kept = {plan_input: replace(old, wants=wants_of_root(old.wants, 0, 2)) for plan_input, old in kept.items()}
        self._inputs, self._roots, self.plan = inputs, [*self._roots, root], tree
        self._read += [0] * (len(inputs.reach) - len(self._read))
        for index, plan_input in enumerate(inputs.roots[-1].inputs):
            stream = planned.join.relations[index].stream_id
            self._read[plan_input] = 0 if stream is None else marks[stream]
            kept[plan_input] = self._old(root, index, stem_of, horizon)
        tree.prime(kept, horizon)
        return root

    def _old(self, root: ForestRoot, index: int, stem_of: ReadStem, horizon: int) -> NewTuples:
        """The tuples of an input of a join that can join new ones."""
        stream, reach = root.planned.join.relations[index].stream_id, root.reach[index]
        plan_input = self._inputs.roots[-1].inputs[index]
        earliest = None if reach is None or horizon == NEVER else horizon - reach
        stem = stem_of(index, (0, self._read[plan_input]), earliest)
        rows = stem.rows_within()
        if len(rows) > STATE_TUPLES:
            raise QueryFailed(f"an input of the plan has {len(rows):,} tuples, more than {STATE_TUPLES:,}")
        times = stem.times_at(rows) if stream is not None and earliest is not None else None
        if times is not None and earliest is not None:
            rows = rows[times >= earliest]
        return self._tuples(plan_input, stem, rows)

    def _tuples(
        self, plan_input: int, stem: Stem, rows: Numbers, kept: tuple[PlannedTree, Flags] | None = None
    ) -> NewTuples:
        """Tuples of an input, with the bits of the queries that may want them; `kept` are those that one join wants."""
        wants: dict[int, Wants] = {}
        for number, root in enumerate(self._roots):
            inputs = self.inputs_of(number)
            if plan_input in inputs:
                wants[number] = root.planned.wants(inputs.index(plan_input), stem, rows)
                if kept is not None and kept[0] is root.planned:
                    wants[number] = np.where(kept[1], wants[number], np.uint64(0))
        return self._inputs.tuples(plan_input, stem, rows, wants)

    def _insert(
        self, planned: PlannedTree, stem_of: ReadStem, end: Mapping[int, int], keep: KeepRows | None = None
    ) -> bool:
        """Insert new tuples of the inputs of a join that are in the plan; False if others have read further."""
        shared = dict(self._shared(planned))
        streams = [relation.stream_id for relation in planned.join.relations]
        ends = {index: end[stream] for index, stream in enumerate(streams) if stream is not None and index in shared}
        if any(self._read[shared[index]] > last for index, last in ends.items()):
            return False
        for stream in planned.join.streams:
            # A joined tuple with several new tuples of the stream is produced by the first of them: the last to arrive.
            for index in reversed(planned.join.inputs_of(stream)):
                if index in ends and self._read[shared[index]] < ends[index]:
                    source = stem_of(index, (self._read[shared[index]], ends[index]), None)
                    rows = source.rows_within()
                    kept = rows if keep is None else keep(index, source, rows)
                    is_kept = np.ones(len(rows), np.bool_) if kept is rows else np.isin(rows, kept)
                    self._insert_rows(shared[index], source, rows, (planned, is_kept))
                    self._read[shared[index]] = ends[index]
        return True

    def _insert_rows(self, plan_input: int, source: Stem, rows: Numbers, kept: tuple[PlannedTree, Flags]) -> None:
        """Insert new tuples of an input, and add the joined tuples that they produce to each join."""
        assert self.plan is not None
        readers = [number for number in range(len(self._roots)) if plan_input in self.inputs_of(number)]
        for begin in range(0, len(rows), INSERTED_TUPLES):
            part = slice(begin, begin + INSERTED_TUPLES)
            times = source.times_at(rows[part])
            assert times is not None
            is_late = times < self.plan.horizon
            new = self._tuples(plan_input, source, rows[part], (kept[0], kept[1][part]))
            for root, joined in zip(self._roots, self.plan.insert(plan_input, new), strict=True):
                if joined.shape[1]:
                    root.joined.append(joined)
            late = source.ids_at(rows[part][is_late])
            for number in readers:
                root, inputs = self._roots[number], self.inputs_of(number)
                root.earliest = min(root.earliest, int(times[~is_late].min(initial=FOREVER)))
                if len(late):
                    limits = [(0, self._read[other]) for other in inputs]
                    root.late.append(LateTuples(inputs.index(plan_input), late, limits))


def _limits(planned: PlannedTree, reach: Reach) -> list[int | None]:
    """How long tuples of streams join later ones."""
    return [
        limit for limit, relation in zip(reach, planned.join.relations, strict=True) if relation.stream_id is not None
    ]


def _first_horizon(
    planned: PlannedTree, stem_of: ReadStem, begin: Mapping[int, int], end: Mapping[int, int]
) -> int | None:
    """The horizon of a plan that starts with new tuples; None if there are none.

    Of tuples that are far apart, only the later ones join by the plan.
    """
    limits = _limits(planned, planned.reach())
    ranges = []
    for stream in planned.join.streams:
        stem = stem_of(planned.join.inputs_of(stream)[0], (begin[stream], end[stream]), None)
        times = stem.times_at(stem.rows_within())
        if times is not None and len(times):
            ranges.append((int(times.min()), int(times.max())))
    longest = max((limit for limit in limits if limit is not None), default=0)
    if None in limits or not ranges:
        return NEVER if ranges else None
    return max(min(first for first, _ in ranges), max(last for _, last in ranges) - longest)
