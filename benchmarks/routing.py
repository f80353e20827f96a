"""A small eddy at work: real tuples through real grouped filters, in the order that a policy chooses.

`tureen/eddy/` decides and does nothing. Here its decisions are carried out, block by block (a block may be a single
tuple), and counted; whatever the policy, the answers must be those of each query evaluated alone.
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
from tureen.schema import Schema
from tureen.stems.index import BLOCK_ROWS, Block

Matrix = npt.NDArray[np.bool_]
"""A row for each tuple, a column for each query."""

Probe = Callable[[Operator, npt.NDArray[np.int64]], Matrix]
"""Which queries an operator accepts some tuples for; queries that it does not serve accept all."""


def clauses_of(conditions: Sequence[str], columns: str) -> list[Clause]:
    """The clauses of some WHERE conditions over a stream with these INT columns."""
    schema = Schema.parse(", ".join(f"{name} INT" for name in columns))
    return [bind_query(f"SELECT * FROM s WHERE {where}", lambda _: ("s", schema)).stream.clause for where in conditions]


def alone(clauses: Sequence[Clause], batch: pa.RecordBatch) -> Matrix:
    """The right answers: each query evaluated by itself."""
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
        """Match the tuples that are left, when they visit: how a block is filtered."""
        return lambda operator, rows: self.accept(operator, batch.take(pa.array(rows)))

    def looking_up(self, batch: pa.RecordBatch) -> Probe:
        """Match all tuples now, and look the visiting ones up: quick enough for one tuple at a time."""
        accepted = {one.name: self.accept(one, batch) for one in self.flow.operators}
        return lambda operator, rows: accepted[operator.name][rows]

    def work(self, sample: pa.RecordBatch, *, sparing: bool) -> Work:
        """What any order of the operators costs on a sample of tuples."""
        accepted = {one.name: _bits(self.accept(one, sample)) for one in self.flow.operators}
        return shared(self.flow, accepted, sparing=sparing)


def route(
    eddy: Eddy, probe: Probe, rows: npt.NDArray[np.int64], size: int, costs: Mapping[str, float] | None = None
) -> Matrix:
    """Send tuples through an eddy in blocks of that size; their answers, a row for each tuple.

    A visit costs 1 for each tuple, or what `costs` says for the operator.
    """
    answers = np.zeros((len(rows), eddy.flow.queries), np.bool_)
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        _route_block(eddy, probe, rows[start:stop], answers[start:stop], costs or {})
    return answers


def _route_block(
    eddy: Eddy, probe: Probe, rows: npt.NDArray[np.int64], answers: Matrix, costs: Mapping[str, float]
) -> None:
    left = np.arange(len(rows))
    alive = np.ones((len(rows), eddy.flow.queries), np.bool_)
    block = eddy.admit(len(rows))
    while operator := eddy.next(block):
        accepted = probe(operator, rows[left])
        rejected = int(np.count_nonzero(alive & ~accepted))
        alive &= accepted
        waiting = sorted(eddy.flow.unfinished(block.done | {operator.name}))
        undecided = alive[:, waiting]
        going = undecided.any(axis=1)
        # Nobody is undecided about those that leave, so whoever has not rejected them wants them.
        answers[left[~going]] = alive[~going]
        seen = Observation(
            operator, len(left), int(np.count_nonzero(going)), rejected, len(left) * costs.get(operator.name, 1.0)
        )
        left, alive = left[going], alive[going]
        names = frozenset(waiting[place] for place in np.flatnonzero(undecided.any(axis=0)).tolist())
        block = eddy.observe(block, seen, names)
    answers[left] = alive


def _blocks(batch: pa.RecordBatch) -> Iterator[tuple[int, Block]]:
    for first in range(0, batch.num_rows, BLOCK_ROWS):
        yield first, Block(batch.slice(first, BLOCK_ROWS))


def _bits(accepted: Matrix) -> list[int]:
    packed = np.packbits(accepted, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
