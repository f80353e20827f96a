"""Random joins and arrivals, and the plain twin of a plan: a loop over all combinations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from tureen.joining.plans.join_graph import JoinEdge, JoinGraph
from tureen.joining.plans.plan_store import FOREVER, NEVER, NewTuples

Row = tuple[int, ...]
"""The ids of the tuples of a joined tuple, input by input."""


def random_graph(draw: random.Random, inputs: int) -> JoinGraph:
    """A clique, a chain, a star, or something between, whose edges have one or two equalities."""
    kind = draw.choice(["clique", "chain", "star", "between"])
    pairs = {
        "clique": [(a, b) for a in range(inputs) for b in range(a + 1, inputs)],
        "chain": [(a, a + 1) for a in range(inputs - 1)],
        "star": [(0, a) for a in range(1, inputs)],
        "between": [(draw.randrange(a), a) for a in range(1, inputs)],
    }[kind]
    if kind == "between":
        pairs += [(a, b) for a in range(inputs) for b in range(a + 1, inputs) if draw.random() < 0.3]
    columns = [0] * inputs
    edges = []
    for left, right in dict.fromkeys(pairs):
        sides = []
        wide = draw.choice([1, 1, 2])
        for number in (left, right):
            own: list[int] = []
            for _ in range(wide):
                # Inputs are compared by the same column as others, or by another one.
                is_new = not columns[number] or len(own) or draw.random() < 0.7
                own.append(columns[number] if is_new else draw.randrange(columns[number]))
                columns[number] += bool(is_new)
            sides.append(tuple(own))
        edges.append(JoinEdge(left, right, *sides))
    tables = frozenset({draw.randrange(inputs)}) if draw.random() < 0.3 else frozenset()
    return JoinGraph(tuple(columns), tuple(edges), tables)


@dataclass(frozen=True)
class ScriptJoin:
    """One of several joins of a script: some of its inputs and equalities, and the bits of its queries."""

    graph: JoinGraph
    inputs: tuple[int, ...]
    bits: int


def random_joins(draw: random.Random, graph: JoinGraph) -> list[ScriptJoin]:
    """Joins of some inputs of a graph that equalities connect, most of which have parts in common."""
    joins = []
    for number in range(draw.choice([2, 2, 3, 4])):
        inputs = [draw.randrange(len(graph))]
        size = draw.randint(2, min(len(graph), 4))
        while len(inputs) < size:
            nearby = [each for each in range(len(graph)) if each not in inputs and graph.are_joined(inputs, [each])]
            # Small numbers first, so that joins have parts in common.
            inputs.append(min(nearby) if draw.random() < 0.7 else draw.choice(nearby))
        edges = [edge for edge in graph.edges if {edge.left, edge.right} <= set(inputs)]
        draw.shuffle(edges)
        if draw.random() < 0.3 and connects(inputs, edges[1:]):
            del edges[0]
        part = JoinGraph(graph.columns, tuple(edges), graph.tables & set(inputs))
        draw.shuffle(inputs)
        joins.append(ScriptJoin(part, tuple(inputs), 3 << 8 * number))
    return [join for join in joins if not set(join.inputs) <= graph.tables]


def connects(inputs: list[int], edges: list[JoinEdge]) -> bool:
    """Whether equalities connect inputs."""
    joined = {inputs[0]}
    for _ in inputs:
        joined |= {each for edge in edges if {edge.left, edge.right} & joined for each in (edge.left, edge.right)}
    return joined == set(inputs)


@dataclass
class JoinScript:
    """Tuples that arrive in blocks, with times that are mostly but not always in order."""

    draw: random.Random
    graph: JoinGraph
    values: int
    reach: list[int | None] = field(default_factory=list)
    clock: int = 0
    arrived: list[list[tuple[int, int, int, Row]]] = field(default_factory=list)
    """For each input its tuples: id, time, who wants it, and keys."""
    closed: set[tuple[int, int, int]] = field(default_factory=set)
    """Input, column and value: no later tuple of the input has it."""

    def __post_init__(self) -> None:
        """Draw the windows."""
        shared = self.draw.choice([None, 5, 12])
        self.reach = [self.draw.choice([shared, shared, shared, 8]) for _ in range(len(self.graph))]
        self.arrived = [[] for _ in range(len(self.graph))]

    def block(self, number: int, size: int) -> NewTuples:
        """Let tuples of an input arrive."""
        first = len(self.arrived[number])
        for index in range(first, first + size):
            self.clock += self.draw.choice([0, 1, 1, 2])
            late = self.draw.choice([0, 0, 0, 0, 3, 15])
            time = NEVER if number in self.graph.tables else self.clock - late
            wants = sum(
                self.draw.choice([1, 2, 3, 3] if not root else [0, 1, 2, 3, 3]) << 8 * root for root in range(4)
            )
            keys = tuple(self._key(number, column) for column in range(self.graph.columns[number]))
            self.arrived[number].append((index, time, wants, keys))
        return as_tuples(self.arrived[number][first:], self.graph.columns[number])

    def _key(self, number: int, column: int) -> int:
        values = [value for value in range(self.values) if (number, column, value) not in self.closed]
        return self.draw.choice(values)

    def close(self, edge: JoinEdge) -> list[int]:
        """Close a value of the right side of an equality; the ids of tuples of the left side that miss a partner."""
        column, value = edge.right_columns[0], self.draw.randrange(self.values)
        if any(closed[:2] == (edge.right, column) for closed in self.closed):
            return []
        self.closed.add((edge.right, column, value))
        own = edge.left_columns[0]
        partners = {tuple(keys[each] for each in edge.right_columns) for _, _, _, keys in self.arrived[edge.right]}
        return [
            number
            for number, _, _, keys in self.arrived[edge.left]
            if keys[own] == value and tuple(keys[each] for each in edge.left_columns) not in partners
        ]

    def new_rows(self, number: int, new: NewTuples, earliest: int, join: ScriptJoin | None = None) -> set[Row]:
        """The joined tuples with a tuple of a block of an input, that is not before a time."""
        ids = set(new.ids[new.times >= earliest].tolist())
        return set(self._joined(number, ids, join or ScriptJoin(self.graph, tuple(range(len(self.graph))), 3)))

    def _joined(self, number: int, ids: set[int], join: ScriptJoin) -> Iterator[Row]:
        order = [number, *(other for other in join.inputs if other != number)]

        def extend(chosen: dict[int, tuple[int, int, int, Row]]) -> Iterator[Row]:
            if len(chosen) == len(order):
                yield tuple(chosen[each][0] for each in join.inputs)
                return
            for candidate in self.arrived[order[len(chosen)]]:
                both = chosen | {order[len(chosen)]: candidate}
                if (len(chosen) or candidate[0] in ids) and self._fits(both, order[len(chosen)], join):
                    yield from extend(both)

        yield from extend({}) if number in join.inputs else ()

    def _fits(self, chosen: dict[int, tuple[int, int, int, Row]], last: int, join: ScriptJoin) -> bool:
        for other in chosen:
            edge = join.graph.edge(last, other)
            if edge is not None and any(
                chosen[last][3][own] != chosen[other][3][their]
                for own, their in zip(edge.columns(last), edge.columns(other), strict=True)
            ):
                return False
        latest = max(each[1] for each in chosen.values())
        until = min(
            FOREVER
            if number in self.graph.tables or self.reach[number] is None
            else each[1] + (self.reach[number] or 0)
            for number, each in chosen.items()
        )
        wants = join.bits
        for each in chosen.values():
            wants &= each[2]
        return latest <= until and wants != 0

    def duckdb_rows(self) -> set[Row]:
        """All joined tuples so far, as DuckDB computes them."""
        connection = duckdb.connect()
        for number, tuples in enumerate(self.arrived):
            columns: dict[str, list[int]] = {
                "id": [each[0] for each in tuples],
                "ts": [each[1] for each in tuples],
                "w": [each[2] for each in tuples],
            }
            for column in range(self.graph.columns[number]):
                columns[f"k{column}"] = [each[3][column] for each in tuples]
            connection.register(
                f"t{number}", pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
            )
        count = range(len(self.graph))
        streams = [number for number in count if number not in self.graph.tables]
        latest = f"greatest({', '.join(f't{number}.ts' for number in streams)})"
        conditions = [
            f"t{edge.left}.k{left} = t{edge.right}.k{right}"
            for edge in self.graph.edges
            for left, right in zip(edge.left_columns, edge.right_columns, strict=True)
        ]
        conditions += [f"{latest} - t{n}.ts <= {self.reach[n]}" for n in streams if self.reach[n] is not None]
        conditions.append(" & ".join(f"t{number}.w" for number in count) + " & 3 <> 0")
        outputs, sources = (", ".join(f"t{number}{suffix}" for number in count) for suffix in (".id", ""))
        sql = f"SELECT {outputs} FROM {sources} WHERE {' AND '.join(f'({each})' for each in conditions)}"
        return set(connection.execute(sql).fetchall())


def as_tuples(tuples: list[tuple[int, int, int, Row]], columns: int) -> NewTuples:
    """Tuples of an input as arrays."""
    keys = np.array([each[3] for each in tuples], np.int64).reshape(len(tuples), columns)
    return NewTuples(
        np.array([each[0] for each in tuples], np.int64),
        np.array([each[1] for each in tuples], np.int64),
        np.ascontiguousarray(keys.T),
        np.array([each[2] for each in tuples], np.uint64),
    )
