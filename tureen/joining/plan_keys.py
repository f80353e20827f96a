"""The keys of a join's tuples, as plans with intermediate results see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tureen.join import JoinCompare
from tureen.joining.join_input import Numbers
from tureen.joining.key_columns import key_columns, key_equalities
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_store import NEVER, NewTuples, Wants
from tureen.joining.shared_join import SharedJoin
from tureen.joining.stem import Stem
from tureen.stems.key_index import HASHED, codes_of, valid_flags


@dataclass(frozen=True)
class PlanKeys:
    """The key columns of each input of a join, and the comparisons that keys do not decide."""

    graph: JoinGraph
    columns: Sequence[Sequence[tuple[str, str]]]
    """For each input, its columns with the domain in which they are compared."""
    rest: Sequence[JoinCompare]
    """Comparisons that are no equalities, and equalities of hashes."""

    @classmethod
    def of(cls, join: SharedJoin) -> PlanKeys:
        """The keys of a join."""
        columns: list[dict[tuple[str, str], int]] = [{} for _ in join.relations]
        edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
        rest: list[JoinCompare] = []
        for factor in join.factors:
            left, right = sorted((factor.left.input, factor.right.input))
            is_key = bool(key_equalities([factor], left))
            if is_key:
                own, other = (key_columns([factor], number)[0] for number in (left, right))
                pair = (
                    columns[left].setdefault(own, len(columns[left])),
                    columns[right].setdefault(other, len(columns[right])),
                )
                edges.setdefault((left, right), []).append(pair)
            if not is_key or factor.domain in HASHED:
                rest.append(factor)
        graph = JoinGraph(
            tuple(map(len, columns)),
            tuple(JoinEdge(*pair, *map(tuple, zip(*compared, strict=True))) for pair, compared in edges.items()),
            frozenset(number for number, relation in enumerate(join.relations) if relation.stream_id is None),
        )
        return cls(graph, [list(of_input) for of_input in columns], rest)

    def tuples(self, number: int, stem: Stem, rows: Numbers, wants: Wants) -> NewTuples:
        """Tuples of an input, without those that have a NULL as a key, which join nothing."""
        names = [name for name, _ in self.columns[number]]
        columns = stem.columns_at(names, rows)
        pairs = zip(columns, self.columns[number], strict=True)
        keys = np.stack([codes_of(column, domain) for column, (_, domain) in pairs])
        valid = np.logical_and.reduce([valid_flags(column) for column in columns])
        times = stem.times_at(rows)
        if times is None:
            times = np.full(len(rows), NEVER)
        new = NewTuples(stem.ids_at(rows), times, keys, wants)
        return new if valid.all() else new.take(np.flatnonzero(valid))
