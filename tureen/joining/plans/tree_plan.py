"""A plan with intermediate results: new tuples go up a tree of joins, whose nodes hold what their inputs have joined.

A joined tuple is produced by that of its tuples which became active last. Without feedback that is the one that arrived
last. With feedback (`tureen.joining.plans.demand`), a tuple that has no partners is suspended, and becomes active
together with the tuple that brings it one. Every tuple of a joined tuple has partners, so that in both cases each is
produced exactly once, by the block of the tuple that arrived last.

A tuple that is late beyond the horizon may join tuples that the plan has forgotten; what it is joined with is left to
the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tureen.joining.join_input import Numbers
from tureen.joining.plans.demand import PartnerDemand
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.plan_node import IntermediateResults, PlanNode
from tureen.joining.plans.plan_shape import PlanShape, inputs_of_shape
from tureen.joining.plans.plan_store import ACTIVE, ALIVE, DROPPED, NEVER, SUSPENDED, NewTuples, PlanStore

BLOCK_RESULTS = 1 << 20
"""The most intermediate results of one block at one node; beyond, the plan fails."""

EXPIRIES = 4
"""How often in the longest window the expired tuples are removed."""


@dataclass(frozen=True)
class PlanStep:
    """A node on the way of new tuples up the tree: where they are kept, and what they are joined with."""

    own: PlanNode
    sibling: PlanNode


class TreePlan:
    """Joins new tuples with a tree of intermediate results."""

    node_type = PlanNode

    def __init__(
        self,
        graph: JoinGraph,
        shape: PlanShape,
        reach: Sequence[int | None],
        *,
        has_feedback: bool = False,
        switch: FeedbackSwitch | None = None,
    ) -> None:
        """Start without tuples; `reach` is how long a tuple of each input joins later ones, None without a limit.

        With a switch, feedback is turned off where it does not help, and on again.
        """
        self.graph, self.shape, self._switch = graph, shape, switch
        self.store = PlanStore(graph, reach)
        self.nodes: dict[PlanShape, PlanNode] = {}
        self._paths: dict[int, list[PlanStep]] = {number: [] for number in range(len(graph))}
        self._build(shape)
        limits = [each for number, each in enumerate(reach) if number not in graph.tables]
        self._reach = None if None in limits else max((each for each in limits if each is not None), default=None)
        self._no_rows: Numbers = np.empty((len(graph), 0), np.int64)
        self.horizon: int = NEVER
        """Everything that joins a tuple from this time on is there."""
        self._latest: int = NEVER
        self.arrived = self.emitted = self.suspended = self.resumed = self.purged = self.unresumable = 0
        """The tuples so far: new, joined, suspended or dropped when they arrived, and resumed; those that punctuations
        have removed, and how many of them were suspended then."""
        self.demand = PartnerDemand(graph, self.store, inputs_of_shape(shape)) if has_feedback else None

    def _build(self, shape: PlanShape) -> None:
        if isinstance(shape, int):
            return
        left, right = shape
        self._build(left)
        self._build(right)
        sides = inputs_of_shape(left), inputs_of_shape(right)
        first, second = (self.node_type(self.graph, *each, self.store) for each in (sides, sides[::-1]))
        self.nodes |= {left: first, right: second}
        for number in sides[0]:
            self._paths[number].append(PlanStep(first, second))
        for number in sides[1]:
            self._paths[number].append(PlanStep(second, first))

    def prime(self, tuples: Mapping[int, NewTuples], horizon: int) -> None:
        """Start with tuples that were there before; what they join with each other is not reported.

        They are all that can join a tuple from `horizon` on.
        """
        self.horizon = horizon
        for number, old in tuples.items():
            self.store.append(number, old)
        if self.demand is not None:
            self._push_all(self.demand.rebuild())
        else:
            self._activate_rest()

    def insert(self, number: int, new: NewTuples) -> Numbers:
        """Add new tuples of an input; the joined tuples that are new, as a line of tuple ids for each input.

        Those with tuples before the horizon are not among them. Raises QueryFailed if there are too many; the plan
        cannot be used any more then.
        """
        if self._switch is not None:
            self._switch.begin()
        numbers = self.store.append(number, new)
        parts = [self._no_rows]
        active = numbers
        if self.demand is not None:
            in_demand = self.demand.arrive(numbers)
            active = in_demand.pop(number, _NONE)
            for other, resumed in in_demand.items():
                parts.append(self._push(other, resumed, is_reported=True))
                self.resumed += len(resumed)
            self.suspended += len(new) - len(active)
        is_late = self.store.times[active] < self.horizon
        parts.append(self._activate(number, active[~is_late], is_reported=True))
        if is_late.any():
            self._activate(number, active[is_late], is_reported=False)
        joined = np.concatenate(parts, axis=1)
        self.arrived += len(new)
        self.emitted += joined.shape[1]
        self._advance(int(new.times.max(initial=NEVER)))
        if self._switch is not None:
            self._turn(is_on=self._switch.is_on_after(len(new)))
        return joined

    def _turn(self, *, is_on: bool) -> None:
        """Turn the feedback on or off."""
        if is_on and self.demand is None:
            self.demand = PartnerDemand(self.graph, self.store, inputs_of_shape(self.shape))
            self.demand.rebuild()
        elif not is_on and self.demand is not None:
            self.demand = None
            # They have no partners, and so no results.
            self._activate_rest()

    def _activate_rest(self) -> None:
        """Let all tuples take part; what they join with each other is not reported."""
        level = self.store.level[: self.store.size]
        waiting = (level != ACTIVE) & (level != DROPPED)
        for number in range(len(self.graph)):
            self._activate(
                number, np.flatnonzero(waiting & (self.store.inputs[: self.store.size] == number)), is_reported=False
            )

    def _push_all(self, in_demand: Mapping[int, Numbers]) -> None:
        """Join tuples that become active, but produce nothing."""
        for number, active in in_demand.items():
            self._push(number, active, is_reported=False)

    def _activate(self, number: int, tuples: Numbers, *, is_reported: bool) -> Numbers:
        self.store.level[tuples] = ACTIVE
        return self._push(number, tuples, is_reported=is_reported)

    def _push(self, number: int, tuples: Numbers, *, is_reported: bool) -> Numbers:
        """Join tuples of an input that become active, node by node; the ids of what arrives at the root."""
        if not len(tuples):
            return self._no_rows
        joined = IntermediateResults.of_input(number, self.store, tuples)
        path = self._paths[number]
        for level, step in enumerate(path):
            step.own.insert(joined)
            if level + 1 == len(path) and not is_reported:
                return self._no_rows
            joined = step.sibling.probe(joined, self.horizon, BLOCK_RESULTS)
            if not len(joined):
                return self._no_rows
        return np.stack([self.store.ids[joined.rows[each]] for each in range(len(self.graph))])

    def _advance(self, latest: int) -> None:
        """Forget what joins only tuples long before the latest one."""
        self._latest = max(self._latest, latest)
        if self._reach is None or self._latest - self.horizon <= 2 * self._reach // EXPIRIES:
            return
        self.horizon = self._latest - self._reach // EXPIRIES
        if not self._compact():
            for node in self.nodes.values():
                node.expire(self.horizon)

    def purge(self, number: int, ids: Numbers) -> None:
        """Forget tuples of an input that no later result contains, suspended ones too: what they miss is closed."""
        store = self.store
        tuples = store.rows_of(number)
        tuples = tuples[np.isin(store.ids[tuples], ids) & (store.until[tuples] != NEVER)]
        level = store.level[tuples]
        self.purged += len(tuples)
        self.unresumable += int(np.count_nonzero((level == SUSPENDED) | (level == ALIVE)))
        store.drop(tuples)
        self._compact()

    def _compact(self) -> bool:
        """Forget tuples that join nothing any more, and what they are in, if they are many."""
        if 5 * self.store.expired(self.horizon) <= 2 * self.store.size:
            return False
        numbers = self.store.expire(self.horizon)
        for node in self.nodes.values():
            node.expire(self.horizon, numbers)
        if self.demand is not None:
            # With fewer keys hardly any tuple comes to be in demand, and none that has results.
            self._push_all(self.demand.rebuild())
        return True

    def avoided(self, shape: PlanShape) -> int | None:
        """The pairs of tuples with equal keys that a node of two inputs does not hold; None for other nodes."""
        inputs = inputs_of_shape(shape)
        if len(inputs) != 2:
            return None
        counts = []
        for own, other in (inputs, inputs[::-1]):
            counts.append(
                np.unique(self.store.keys[self.store.line_of(own, other)][self.store.rows_of(own)], return_counts=True)
            )
        (first, of_first), (second, of_second) = counts
        _, at, other_at = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        return int(np.dot(of_first[at], of_second[other_at])) - self.nodes[shape].size

    @property
    def tuples(self) -> int:
        """The number of tuples and intermediate results that it holds."""
        inner = sum(node.size for shape, node in self.nodes.items() if not isinstance(shape, int))
        return inner + self.store.size

    @property
    def bytes(self) -> int:
        """The memory that they take."""
        of_demand = 0 if self.demand is None else self.demand.bytes
        of_nodes = sum(node.bytes for node in self.nodes.values())
        return of_nodes + self.store.bytes + of_demand

    @property
    def made(self) -> int:
        """The number of intermediate results so far."""
        return sum(node.made for shape, node in self.nodes.items() if not isinstance(shape, int))


_NONE: Numbers = np.empty(0, np.int64)
