"""A step up a plan: the joined tuples of a part are joined with those of another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tureen.errors import QueryFailed
from tureen.joining.join_input import Numbers
from tureen.joining.plans.join_graph import JoinGraph
from tureen.joining.plans.node_index import KeyLines, NodeIndex, hashed_keys
from tureen.joining.plans.plan_kernels import find_partners
from tureen.joining.plans.plan_node import IntermediateResults, PlanNode
from tureen.joining.plans.plan_shape import PlanPart
from tureen.joining.plans.plan_store import PlanStore


@dataclass(frozen=True)
class PlanStep:
    """What joined tuples are joined with, by which key, and what that gives."""

    store: PlanStore
    key: KeyLines
    """The key of the joined tuples that arrive."""
    sibling: PlanNode
    index: NodeIndex
    columns: tuple[tuple[int, int, int, int], ...]
    """The equalities: input and column of the sibling, and of what arrives."""
    parent: PlanPart

    @classmethod
    def between(
        cls, graph: JoinGraph, inputs: tuple[int, ...], sibling: PlanNode, parent: PlanPart, store: PlanStore,
        index_type: type[NodeIndex],
    ) -> PlanStep:  # fmt: skip
        """The step of joined tuples of some inputs; the sibling gets an index for it, if it has none."""
        key: list[tuple[int, int]] = []
        sibling_key: list[tuple[int, int]] = []
        columns: list[tuple[int, int, int, int]] = []
        for other in sibling.inputs:
            for number in inputs:
                edge = graph.edge(number, other)
                if edge is not None:
                    own, their = edge.columns(number), edge.columns(other)
                    key.append((number, store.line_of(number, own)))
                    sibling_key.append((other, store.line_of(other, their)))
                    columns += [(other, theirs, number, ours) for ours, theirs in zip(own, their, strict=True)]
        index = sibling.indexes.setdefault(tuple(sibling_key), index_type(tuple(sibling_key)))
        return cls(store, tuple(key), sibling, index, tuple(columns), parent)

    def join(self, joined: IntermediateResults, horizon: int, most: int) -> IntermediateResults:
        """Joined tuples with those of the sibling that satisfy all equalities.

        Those of the sibling that joined only tuples before the horizon are left out. Raises QueryFailed if there are
        more than `most`.
        """
        sibling, index = self.sibling, self.index
        hashes = hashed_keys(self.key, joined.rows, self.store)
        size = 2 * len(joined) + 1024
        while True:
            probing, partners = np.empty(size, np.int64), np.empty(size, np.int64)
            count = find_partners(
                index.heads, index.nexts, index.hashes, sibling.latest, sibling.until, sibling.wants,
                hashes, joined.latest, joined.until, joined.wants, horizon, probing, partners,
            )  # fmt: skip
            if count <= size:
                break
            if count > most:
                raise QueryFailed(f"the plan would have {count:,} intermediate results of one block")
            size = count
        probing, partners = probing[:count], partners[:count]
        if len(self.columns) > 1 and count:
            probing, partners = self._equal(joined, probing, partners)
        own = {number: sibling.rows[line][partners] for line, number in enumerate(sibling.inputs)}
        return IntermediateResults(
            own | {number: rows[probing] for number, rows in joined.rows.items()},
            np.maximum(sibling.latest[partners], joined.latest[probing]),
            np.minimum(sibling.until[partners], joined.until[probing]),
            sibling.wants[partners] & joined.wants[probing],
        )

    def _equal(self, joined: IntermediateResults, probing: Numbers, partners: Numbers) -> tuple[Numbers, Numbers]:
        """The pairs whose key columns are equal, and not only a hash of them."""
        equal = np.ones(len(probing), np.bool_)
        for other, other_column, number, column in self.columns:
            other_rows = self.sibling.rows[self.sibling.inputs.index(other)][partners]
            equal &= self.store.keys[other_column][other_rows] == self.store.keys[column][joined.rows[number][probing]]
        return (probing, partners) if equal.all() else (probing[equal], partners[equal])
