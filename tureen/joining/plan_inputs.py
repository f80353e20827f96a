"""The inputs of one or several joins, as plans with intermediate results see them: by keys that are integers.

Inputs of several joins that read the same relation within the same window are one input of the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tureen.join import JoinCompare
from tureen.joining.join_input import Numbers
from tureen.joining.key_columns import key_columns, key_equalities
from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_root import wants_of_root
from tureen.joining.plans.plan_store import NEVER, NewTuples, Wants
from tureen.joining.shared_join import JoinedRelation, SharedJoin
from tureen.joining.stem import Stem
from tureen.stems.key_index import HASHED, codes_of, valid_flags

Reach = tuple[int | None, ...]
"""The reach of each input of a join: how much later the tuples that its tuples join may be; None without a limit."""


@dataclass(frozen=True)
class RootInputs:
    """A join among the inputs of a plan."""

    graph: JoinGraph
    inputs: tuple[int, ...]
    """For each input of the join, that of the plan."""
    columns: Sequence[Sequence[int]]
    """For each input of the join, the key columns that it is compared by."""
    rest: Sequence[JoinCompare]
    """Comparisons that are no equalities, and equalities of hashes."""


@dataclass(frozen=True)
class PlanInputs:
    """The inputs of a plan for some joins."""

    columns: Sequence[Sequence[tuple[str, str]]]
    """For each input, its key columns with the domain in which they are compared."""
    reach: Reach
    roots: Sequence[RootInputs]

    @classmethod
    def of(cls, joins: Sequence[tuple[SharedJoin, Reach]]) -> PlanInputs:
        """The inputs of joins. With another join at the end, those of the others keep their numbers."""
        numbers: dict[object, int] = {}
        columns: list[dict[tuple[str, str], int]] = []
        reach: list[int | None] = []
        inputs_of: list[tuple[int, ...]] = []
        for root, (join, limits) in enumerate(joins):
            occurrences = Counter(join.relations)
            inputs: list[int] = []
            for index, (relation, limit) in enumerate(zip(join.relations, limits, strict=True)):
                # Several inputs over one relation cannot be told apart.
                is_unique = occurrences[relation] == 1
                key = (relation, limit) if is_unique else (relation, limit, root, index)
                if key not in numbers:
                    numbers[key] = len(numbers)
                    columns.append({})
                    reach.append(limit)
                inputs.append(numbers[key])
            inputs_of.append(tuple(inputs))
        keys = [_keys(join, inputs, columns) for (join, _), inputs in zip(joins, inputs_of, strict=True)]
        widths = tuple(map(len, columns))
        roots = []
        for (join, _), own, (edges, rest) in zip(joins, inputs_of, keys, strict=True):
            tables = frozenset(u for u, relation in zip(own, join.relations, strict=True) if relation.stream_id is None)
            compared = [sorted({column for edge in edges for column in _columns(edge, u)}) for u in own]
            roots.append(RootInputs(JoinGraph(widths, tuple(edges), tables), own, compared, rest))
        return cls([list(of_input) for of_input in columns], tuple(reach), roots)

    def tuples(self, number: int, stem: Stem, rows: Numbers, wants: Mapping[int, Wants]) -> NewTuples:
        """Tuples of an input that some join may want; `wants` has any bits of its queries for each join with the input.

        A tuple that has a NULL as a key of a join is in none of its results.
        """
        columns = stem.columns_at([name for name, _ in self.columns[number]], rows)
        pairs = zip(columns, self.columns[number], strict=True)
        keys = np.stack([codes_of(column, domain) for column, (_, domain) in pairs])
        valid = [valid_flags(column) for column in columns]
        bits = np.zeros(len(rows), np.uint64)
        for root, of_root in wants.items():
            inputs = self.roots[root]
            own = inputs.columns[inputs.inputs.index(number)]
            has_keys = np.logical_and.reduce([valid[column] for column in own])
            bits |= wants_of_root(np.where(has_keys, of_root, np.uint64(0)), root, len(self.roots))
        times = stem.times_at(rows)
        new = NewTuples(stem.ids_at(rows), np.full(len(rows), NEVER) if times is None else times, keys, bits)
        return new if bits.all() else new.take(np.flatnonzero(bits))


def _keys(
    join: SharedJoin, inputs: Sequence[int], columns: list[dict[tuple[str, str], int]]
) -> tuple[list[JoinEdge], list[JoinCompare]]:
    """The equalities of a join between inputs of a plan, whose columns are added, and its other comparisons."""
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    rest: list[JoinCompare] = []
    for factor in join.factors:
        sides = sorted((factor.left.input, factor.right.input), key=lambda number: inputs[number])
        is_key = bool(key_equalities([factor], sides[0]))
        if is_key:
            own, other = (inputs[number] for number in sides)
            compared = [
                columns[u].setdefault(key_columns([factor], number)[0], len(columns[u]))
                for u, number in zip((own, other), sides, strict=True)
            ]
            pairs.setdefault((own, other), []).append((compared[0], compared[1]))
        if not is_key or factor.domain in HASHED:
            rest.append(factor)
    edges = [
        JoinEdge(*between, *map(tuple, zip(*sorted(compared), strict=True))) for between, compared in pairs.items()
    ]
    return edges, rest


def _columns(edge: JoinEdge, number: int) -> tuple[int, ...]:
    return edge.columns(number) if number in (edge.left, edge.right) else ()


def have_part_in_common(first: SharedJoin, second: SharedJoin) -> bool:
    """Whether two joins compare two relations in the same way."""
    return bool(_compared(first) & _compared(second))


def _compared(join: SharedJoin) -> set[tuple[JoinedRelation, JoinedRelation, frozenset[object]]]:
    """Pairs of relations that the join has once, with the equalities between them."""
    occurrences = Counter(join.relations)
    equalities: dict[tuple[JoinedRelation, JoinedRelation], set[object]] = {}
    for factor in join.factors:
        left, right = sorted((factor.left.input, factor.right.input))
        pair = join.relations[left], join.relations[right]
        if key_equalities([factor], left) and occurrences[pair[0]] == occurrences[pair[1]] == 1:
            fields = key_columns([factor], left) + key_columns([factor], right)
            equalities.setdefault(pair, set()).add(fields)
    return {(*pair, frozenset(compared)) for pair, compared in equalities.items()}
