"""Runs an eddy: real tuples through real grouped filters, in the order that a policy chooses.

`tureen/eddy/` only decides. Here its decisions are executed, block by block (a block may be a single tuple), and
counted; for every policy, the answers must be those of each query evaluated alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.eddy import Eddy, Flow, Observation, Operator, Work, operator_name, shared
from tureen.language import bind_query
from tureen.matching import Buffers, CellReader, match_block, select
from tureen.predicate import Clause
from tureen.queries import compile_clauses
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, Block

Matrix = npt.NDArray[np.bool_]
"""A row for each tuple, a column for each query."""

Probe = Callable[[Operator, npt.NDArray[np.int64]], Matrix]
"""Which queries an operator accepts some tuples for; queries without that operator accept all."""


def clauses_of(conditions: Sequence[str], columns: str) -> list[Clause]:
    """The clauses of some WHERE conditions over a stream with these INT columns."""
    schema = Schema.parse(", ".join(f"{name} INT" for name in columns))
    return [
        bind_query(f"SELECT * FROM s WHERE {where}", lambda _: NamedRelation("s", schema)).stream.clause
        for where in conditions
    ]


def alone(clauses: Sequence[Clause], batch: pa.RecordBatch) -> Matrix:
    """The correct answers: each query evaluated by itself."""
    answers = np.zeros((batch.num_rows, len(clauses)), np.bool_)
    for first, block in _blocks(batch):
        for number, clause in enumerate(clauses):
            answers[first + select(block, clause).astype(np.int64), number] = True
    return answers


class GroupedFilters:
    """CACQ's grouped filters (§2.2) made of the engine's own matching: all factors on a column at once."""

    def __init__(self, clauses: Sequence[Clause], schema: pa.Schema) -> None:
        """Compile one query run for each operator of the clauses' flow."""
        self.flow = Flow.of(clauses)
        self._buffers = Buffers()
        self._runs = {}
        for operator in self.flow.operators:
            numbers = sorted(operator.queries)
            parts = [
                tuple(factor for factor in clauses[number] if operator_name(factor) == operator.name)
                for number in numbers
            ]
            self._runs[operator.name] = compile_clauses(numbers, parts, schema)

    def accept(self, operator: Operator, batch: pa.RecordBatch) -> Matrix:
        """Which queries the operator accepts the tuples for."""
        accepted = np.ones((batch.num_rows, self.flow.queries), np.bool_)
        accepted[:, sorted(operator.queries)] = False
        for first, block in _blocks(batch):
            cell = match_block(block, self._runs[operator.name], self._buffers)
            reader = CellReader(cell.batch, block.rows)
            for number in reader.clauses.tolist():
                accepted[first + reader.rows_of(number).astype(np.int64), number] = True
        return accepted

    def matching(self, batch: pa.RecordBatch) -> Probe:
        """Match the remaining tuples at each visit, as blocks are filtered."""
        return lambda operator, rows: self.accept(operator, batch.take(pa.array(rows)))

    def looking_up(self, batch: pa.RecordBatch) -> Probe:
        """Match all tuples in advance, and look them up at each visit: fast enough for single tuples."""
        accepted = {operator.name: self.accept(operator, batch) for operator in self.flow.operators}
        return lambda operator, rows: accepted[operator.name][rows]

    def work(self, sample: pa.RecordBatch, *, sparing: bool) -> Work:
        """The cost of any order of the operators on a sample of tuples."""
        accepted = {operator.name: _bits(self.accept(operator, sample)) for operator in self.flow.operators}
        return shared(self.flow, accepted, sparing=sparing)


def route(
    eddy: Eddy, probe: Probe, rows: npt.NDArray[np.int64], size: int, costs: Mapping[str, float] | None = None
) -> Matrix:
    """Send tuples through an eddy in blocks of `size`; returns their answers, a row for each tuple.

    A visit costs 1 for each tuple, or the operator's cost in `costs`.
    """
    answers = np.zeros((len(rows), eddy.flow.queries), np.bool_)
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        _route_block(eddy, probe, rows[start:stop], answers[start:stop], costs or {})
    return answers


def _route_block(
    eddy: Eddy, probe: Probe, rows: npt.NDArray[np.int64], answers: Matrix, costs: Mapping[str, float]
) -> None:
    remaining = np.arange(len(rows))
    alive = np.ones((len(rows), eddy.flow.queries), np.bool_)
    block = eddy.admit(len(rows))
    while operator := eddy.next(block):
        accepted = probe(operator, rows[remaining])
        rejected = int(np.count_nonzero(alive & ~accepted))
        alive &= accepted
        waiting = sorted(eddy.flow.unfinished(block.visited | {operator.name}))
        undecided = alive[:, waiting]
        undecided_rows = undecided.any(axis=1)
        # No query is undecided about the tuples that leave, so every query that has not rejected them accepts them.
        answers[remaining[~undecided_rows]] = alive[~undecided_rows]
        observation = Observation(
            operator,
            len(remaining),
            int(np.count_nonzero(undecided_rows)),
            rejected,
            len(remaining) * costs.get(operator.name, 1.0),
        )
        remaining, alive = remaining[undecided_rows], alive[undecided_rows]
        undecided_queries = frozenset(waiting[index] for index in np.flatnonzero(undecided.any(axis=0)).tolist())
        block = eddy.observe(block, observation, undecided_queries)
    answers[remaining] = alive


def _blocks(batch: pa.RecordBatch) -> Iterator[tuple[int, Block]]:
    for first in range(0, batch.num_rows, BLOCK_ROWS):
        yield first, Block(batch.slice(first, BLOCK_ROWS))


def _bits(accepted: Matrix) -> list[int]:
    packed = np.packbits(accepted, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
