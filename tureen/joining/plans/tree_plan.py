"""A plan with intermediate results: new tuples go up trees of joins, whose nodes hold what their inputs have joined.

A plan makes the results of one join, or of several. A part that several trees have in common, with the same inputs and
equalities, is one node: its joined tuples are made and held once, and go up all of these trees.

A joined tuple is produced by that of its tuples which became active last. Without feedback that is the one that arrived
last. With feedback (`tureen.joining.plans.demand`), a tuple that has no partners is suspended, and becomes active
together with the tuple that brings it one. Every tuple of a joined tuple has partners, so that in both cases each is
produced exactly once, by the block of the tuple that arrived last. A tuple of several joins is active if one of them
demands it: that it is active for the others too changes none of their results.

A tuple that is late beyond the horizon may join tuples that the plan has forgotten; what it is joined with is left to
the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tureen.joining.join_input import Numbers
from tureen.joining.plans.demand import PartnerDemand
from tureen.joining.plans.feedback_switch import FeedbackSwitch
from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.node_index import NodeIndex
from tureen.joining.plans.plan_costs import PlanWork
from tureen.joining.plans.plan_node import IntermediateResults, PlanNode
from tureen.joining.plans.plan_root import PlanRoot, RootCounts
from tureen.joining.plans.plan_shape import PlanPart, PlanShape, inputs_of_shape, part_of
from tureen.joining.plans.plan_step import PlanStep
from tureen.joining.plans.plan_store import NEVER, NewTuples, PlanStore

BLOCK_RESULTS = 1 << 20
"""The most intermediate results of one block at one node; beyond, the plan fails."""

EXPIRIES = 4
"""How often in the longest window the expired tuples are removed."""

_Output = list[list[Numbers]]
"""For each join, the ids of its new joined tuples."""


class TreePlan:
    """Joins new tuples with trees of intermediate results."""

    index_type = NodeIndex

    def __init__(
        self, roots: Sequence[PlanRoot], reach: Sequence[int | None], *, switch: FeedbackSwitch | None = None
    ) -> None:
        """Start without tuples; `reach` is how long a tuple of each input joins later ones, None without a limit.

        With a switch, feedback that is left to it is turned off where it does not help, and on again.
        """
        self.roots, self._switch = tuple(roots), switch
        self.store = PlanStore([root.graph for root in self.roots], reach)
        self.nodes: dict[PlanPart, PlanNode] = {}
        """What other parts are joined with: the joined tuples of all parts but whole joins."""
        self._steps: dict[PlanPart, list[PlanStep]] = {}
        self._results_at: dict[PlanPart, list[int]] = {}
        """The joins whose results are the joined tuples of a part."""
        for number, root in enumerate(self.roots):
            self._results_at.setdefault(self._build(root.graph, root.shape), []).append(number)
        tables = frozenset().union(*(root.graph.tables for root in self.roots))
        limits = [limit for number, limit in enumerate(reach) if number not in tables]
        self._reach = None if None in limits else max((limit for limit in limits if limit is not None), default=None)
        self.horizon: int = NEVER
        """The plan has all tuples that can join a tuple from this time on."""
        self._latest: int = NEVER
        self.counts = [RootCounts() for _ in self.roots]
        self.work = PlanWork()
        self.demands = [None if root.jit is False else PartnerDemand(root, self.store) for root in self.roots]
        """What each join demands; None without feedback."""

    def _build(self, graph: JoinGraph, shape: PlanShape) -> PlanPart:
        """The nodes and steps of a tree, as far as there are none."""
        part = part_of(graph, shape)
        if isinstance(shape, int) or part in self._results_at:
            return part
        left, right = (self._build(graph, side) for side in shape)
        if any(step.parent == part for step in self._steps.get(left, ())):
            return part
        for side, its_part in zip(shape, (left, right), strict=True):
            if its_part not in self.nodes:
                self.nodes[its_part] = PlanNode(inputs_of_shape(side), self.store)
        for own, other in ((left, right), (right, left)):
            inputs = self.nodes[own].inputs
            step = PlanStep.between(graph, inputs, self.nodes[other], part, self.store, self.index_type)
            self._steps.setdefault(own, []).append(step)
        return part

    def prime(self, tuples: Mapping[int, NewTuples], horizon: int) -> None:
        """Start with tuples that were there before; what they join with each other is not reported.

        They are all that can join a tuple from `horizon` on.
        """
        self.horizon = horizon
        for number, old in tuples.items():
            self.store.append(number, old)
        self._rebuild()
        if self._switch is not None:
            self._switch.begin(self.spent)

    def _rebuild(self) -> None:
        """Activate all tuples that are in demand, without reporting the results among them."""
        bits = self._undirected()
        active = [np.flatnonzero((self.store.wants[: self.store.size] & bits) != 0)] if bits else []
        active += [demand.rebuild() for demand in self.demands if demand is not None]
        self._activate(_merged(active), None)

    def _undirected(self) -> np.uint64:
        """The bits of the joins without feedback, which demand all tuples."""
        bits = np.uint64(0)
        for root, demand in zip(self.roots, self.demands, strict=True):
            bits |= np.uint64(0) if demand is not None else root.bits
        return bits

    def insert(self, number: int, new: NewTuples) -> list[Numbers]:
        """Add new tuples of an input; for each join the new joined tuples, as a line of tuple ids for each input.

        Those with tuples before the horizon are not among them. Raises QueryFailed if there are too many; the plan
        cannot be used any more then.
        """
        numbers = self.store.append(number, new)
        output: _Output = [[np.empty((len(root.inputs), 0), np.int64)] for root in self.roots]
        if len(numbers):
            active = self._demanded(numbers)
            first = int(numbers[0])
            # What new tuples resume is joined before they are done.
            self._activate(active[active < first], output)
            is_late = self.store.times[active] < self.horizon
            self._activate(active[(active >= first) & ~is_late], output)
            self._activate(active[(active >= first) & is_late], None)
        joined = [np.concatenate(parts, axis=1) for parts in output]
        for counts, rows in zip(self.counts, joined, strict=True):
            counts.emitted += rows.shape[1]
        self._advance(int(new.times.max(initial=NEVER)))
        if self._switch is not None and self._turn(is_on=self._switch.is_on_after(len(new), self.spent)):
            self._switch.begin(self.spent)
        return joined

    def _demanded(self, new: Numbers) -> Numbers:
        """The tuples that some join demands now, with those that it demanded before."""
        wants, bits = self.store.wants[new], self._undirected()
        demanded = [new[(wants & bits) != 0]] if bits else []
        for root, demand, counts in zip(self.roots, self.demands, self.counts, strict=True):
            arrived = int(np.count_nonzero(wants & root.bits))
            counts.arrived += arrived
            if demand is not None and arrived:
                active = demand.arrive()
                first = int(np.searchsorted(active, new[0]))
                counts.resumed += int(np.count_nonzero(~self.store.active[active[:first]]))
                counts.suspended += arrived - (len(active) - first)
                demanded.append(active)
        return _merged(demanded)

    def _turn(self, *, is_on: bool) -> bool:
        """Turn the feedback that the switch decides about on or off; returns whether anything changed."""
        is_changed = False
        for number, root in enumerate(self.roots):
            demand = self.demands[number]
            if root.jit is not None or is_on == (demand is not None):
                continue
            is_changed = True
            if demand is None:
                demand = self.demands[number] = PartnerDemand(root, self.store)
                demand.rebuild()
                continue
            self.work.count_demand(demand)
            self.demands[number] = None
            # They have no partners, and so no results.
            rest = np.flatnonzero((self.store.wants[: self.store.size] & root.bits) != 0)
            self._activate(rest, None)
        return is_changed

    def _activate(self, tuples: Numbers, output: _Output | None) -> None:
        """Activate tuples; without an output, their results are not reported."""
        tuples = tuples[~self.store.active[tuples]]
        self.store.active[tuples] = True
        inputs = self.store.inputs[tuples]
        for number in np.unique(inputs).tolist():
            joined = IntermediateResults.of_input(number, self.store, tuples[inputs == number])
            self._arrive(PlanPart(number, frozenset()), joined, output)

    def _arrive(self, part: PlanPart, joined: IntermediateResults, output: _Output | None) -> None:
        """Joined tuples of a part that are new: they are reported, kept, and joined further."""
        if output is not None:
            for number in self._results_at.get(part, ()):
                output[number].append(self._ids(self.roots[number], joined))
        if part not in self._steps:
            return
        self.nodes[part].insert(joined)
        for step in self._steps[part]:
            if output is not None or step.parent in self._steps:
                self.work.count_step(len(joined))
                further = step.join(joined, self.horizon, BLOCK_RESULTS)
                if len(further):
                    self._arrive(step.parent, further, output)

    def _ids(self, root: PlanRoot, joined: IntermediateResults) -> Numbers:
        """The ids of the tuples of joined ones that queries of a join may want."""
        lines = [self.store.ids[joined.rows[number]] for number in root.inputs]
        kept = (joined.wants & root.bits) != 0
        return np.stack(lines) if kept.all() else np.stack(lines)[:, kept]

    def _advance(self, latest: int) -> None:
        """Forget what joins only tuples long before the latest one."""
        self._latest = max(self._latest, latest)
        if self._reach is None or self._latest - self.horizon <= 2 * self._reach // EXPIRIES:
            return
        self.horizon = self._latest - self._reach // EXPIRIES
        if not self._compact():
            for node in self.nodes.values():
                node.expire(self.horizon)

    def purge(self, root: int, number: int, ids: Numbers) -> None:
        """Forget tuples of an input that no later result of a join contains; what suspended ones miss is closed."""
        store, bits, counts, demand = self.store, self.roots[root].bits, self.counts[root], self.demands[root]
        tuples = store.rows_of(number)
        tuples = tuples[np.isin(store.ids[tuples], ids) & ((store.wants[tuples] & bits) != 0)]
        counts.purged += len(tuples)
        counts.unresumable += 0 if demand is None else demand.drop(tuples)
        store.unwant(tuples, bits)
        self._compact()

    def _compact(self) -> bool:
        """Forget tuples that join nothing any more, and what they are in, if they are many."""
        if 5 * self.store.expired(self.horizon) <= 2 * self.store.size:
            return False
        numbers = self.store.expire(self.horizon)
        for node in self.nodes.values():
            node.expire(self.horizon, numbers)
        for demand in self.demands:
            if demand is not None:
                demand.keep(np.flatnonzero(numbers >= 0))
        if any(demand is not None for demand in self.demands):
            # With fewer keys hardly any tuple comes to be in demand, and none that has results.
            self._rebuild()
        return True

    def waiting(self, root: int) -> list[int]:
        """The number of tuples of each input of a join that are suspended."""
        demand, inputs = self.demands[root], self.roots[root].inputs
        waiting = np.empty(0, np.int64) if demand is None else demand.waiting()
        waiting = waiting[~self.store.active[waiting]]
        counts = np.bincount(self.store.inputs[waiting], minlength=max(inputs) + 1)
        return [int(counts[number]) for number in inputs]

    def avoided(self, graph: JoinGraph, shape: PlanShape) -> int | None:
        """The pairs of tuples with equal keys that a node of two inputs does not hold; None for other nodes."""
        inputs = inputs_of_shape(shape)
        edge = graph.edge(*inputs) if len(inputs) == 2 else None
        if edge is None:
            return None
        (first, of_first), (second, of_second) = (
            np.unique(
                self.store.keys[self.store.line_of(number, edge.columns(number)), self.store.rows_of(number)],
                return_counts=True,
            )
            for number in inputs
        )
        _, at, other_at = np.intersect1d(first, second, assume_unique=True, return_indices=True)
        return int(np.dot(of_first[at], of_second[other_at])) - self.nodes[part_of(graph, shape)].size

    def consumers(self, graph: JoinGraph, shape: PlanShape) -> int:
        """The number of parts that the joined tuples of a part are joined with."""
        return len(self._steps[part_of(graph, shape)])

    def _inner(self) -> list[PlanNode]:
        return [node for node in self.nodes.values() if len(node.inputs) > 1]

    @property
    def tuples(self) -> int:
        """The number of tuples and intermediate results that it holds."""
        return sum(node.size for node in self._inner()) + self.store.size

    @property
    def bytes(self) -> int:
        """The memory that they take."""
        of_demand = sum(demand.bytes for demand in self.demands if demand is not None)
        return sum(node.bytes for node in self.nodes.values()) + self.store.bytes + of_demand

    @property
    def made(self) -> int:
        """The number of intermediate results so far."""
        return sum(node.made for node in self._inner())

    @property
    def shared(self) -> int:
        """The number of nodes with intermediate results that are joined with several others."""
        return sum(len(node.inputs) > 1 and len(self._steps[part]) > 1 for part, node in self.nodes.items())

    @property
    def switch_turns(self) -> int:
        """How often feedback was turned on or off."""
        return 0 if self._switch is None else self._switch.turns

    @property
    def spent(self) -> float:
        """What the plan has cost so far, see `plan_costs`."""
        return self.work.spent(sum(node.made for node in self.nodes.values()), self.demands)


def _merged(parts: Sequence[Numbers]) -> Numbers:
    """Ascending numbers of several lists, each once."""
    if len(parts) == 1:
        return parts[0]
    return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
