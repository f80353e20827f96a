"""The rows of one query, read from the joined tuples of a continuous join.

They are the same rows, in the same order and with the same positions, as `tureen.results.changes.join_changes` computes
for the query alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tureen.join import JoinOpaque
from tureen.joining.join_consumers import JoinConsumer
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedBlock, JoinedPiece
from tureen.joining.shared_factor import SharedFactor
from tureen.joining.shared_join import SharedJoinOfQuery
from tureen.matching import Selector
from tureen.matching.clause_set import simple_factors
from tureen.predicate import columns_of
from tureen.results.changes.join_changes import JoinedPart
from tureen.results.following.block_rows import parts_of
from tureen.results.following.row_shape import RowOrder, RowShape
from tureen.results.joins.join_ready import ReadyJoin
from tureen.stems.index import BLOCK_ROWS, Block
from tureen.window import Now, Window


class OperatorQuery:
    """What a query takes from the joined tuples of its shared join."""

    def __init__(
        self, ready: ReadyJoin, shared: SharedJoinOfQuery, schemas: Sequence[pa.Schema], *, has_hidden: bool = False
    ) -> None:
        """Prepare a query; `schemas` are those of the shared join's inputs.

        With `has_hidden`, some inputs are those of EXISTS or IN: joined tuples tell only that there may be a new row.
        """
        self.ready, self.has_hidden = ready, has_hidden
        self.shape = RowShape.of(ready, shared)
        self._streams = [relation.stream_id for relation in shared.join.relations]
        inputs = [ready.inputs[number].input for number in shared.inputs]
        clauses = [simple_factors(entry.clause) for entry in inputs]
        self._selectors: list[tuple[int, Selector, list[str]]] = []
        for number, (entry, simple) in enumerate(zip(inputs, clauses, strict=True)):
            others = tuple(factor for factor in entry.clause if factor not in simple)
            if others:
                names = sorted({name for factor in others for name in columns_of(factor)})
                self._selectors.append((number, Selector(others, schemas[number]), names))
        opaque = [SharedFactor.of(factor, shared) for factor in shared.rest if isinstance(factor, JoinOpaque)]
        factors = tuple(dict.fromkeys(opaque))
        self._is_simple = not self._selectors and not self.shape.calls_functions
        reach = tuple(reach_of(entry.window) for entry in inputs)
        columns, has_windows = self._columns(len(inputs), factors), len(self.shape.windows) > 0
        self.consumer = JoinConsumer(tuple(clauses), factors, columns, reach, has_windows)

    def _columns(self, inputs: int, factors: Sequence[SharedFactor]) -> tuple[tuple[str, ...], ...]:
        columns: list[set[str]] = [set() for _ in range(inputs)]
        for field in [*self.shape.fields, *(field for factor in factors for _, field in factor.columns)]:
            columns[field.input].add(field.column)
        for number, _, names in self._selectors:
            columns[number].update(names)
        return tuple(tuple(sorted(names)) for names in columns)

    def can_share(self, block: JoinedBlock) -> bool:
        """Whether the lineages in a block, the windows and the outputs determine its rows."""
        factors = self.consumer.factors
        return self._is_simple and (not factors or all(piece.applied.issuperset(factors) for piece in block.pieces))

    def first_with_rows(self, blocks: Sequence[JoinedBlock], slot: int, since: Mapping[int, int]) -> JoinedBlock | None:
        """The first block with a joined tuple of the query that is new since a vector of marks."""
        for block in blocks:
            if any(len(self._rows(piece, slot, since)) for piece in block.pieces):
                return block
        return None

    def read(
        self, blocks: Sequence[JoinedBlock], slot: int, since: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[pa.Table, list[JoinedPart]]:
        """The rows of consecutive blocks that are new since a vector of marks, and the parts that they form."""
        tables, ids = [], []
        for block in blocks:
            is_partly_read = not block.is_after(since)
            for piece in block.pieces:
                rows = self._rows(piece, slot, since if is_partly_read else None)
                if len(rows):
                    selected = rows if len(rows) < len(piece) else None
                    tables.append(self.shape.table(piece, selected))
                    ids.append(self.shape.ids(piece, selected))
        if not ids:
            return self.ready.finish.each(_NO_COLUMNS), []
        order = RowOrder.of(self.shape, np.concatenate(ids, axis=1), since)
        rows_in_order = self.ready.finish.each(order.table(pa.concat_tables(tables)))
        return rows_in_order, parts_of(order.part_of, order.latest, since, ends)

    def _rows(self, piece: JoinedPiece, slot: int, since: Mapping[int, int] | None) -> Numbers:
        """The joined tuples of a piece that are rows of the query, new since a vector of marks if there is one."""
        rows = piece.lineages.rows_of(slot)
        if not len(rows):
            return rows
        if since is not None:
            is_new = np.zeros(len(rows), np.bool_)
            for number, stream in enumerate(self._streams):
                if stream is not None:
                    is_new |= piece.ids_at(number, rows) >= since[stream]
            rows = rows[is_new]
        rows = self.shape.within_windows(piece, rows)
        for number, selector, names in self._selectors:
            if len(rows):
                rows = rows[_satisfies(piece, number, selector, names, rows)]
        for factor in self.consumer.factors:
            if len(rows) and factor not in piece.applied:
                remaining = rows
                rows = rows[factor.satisfying(len(rows), lambda field: piece.values_at(field, remaining))]  # noqa: B023
        return rows


def reach_of(window: Window) -> int | None:
    """How long before the latest tuple of a row those in a window may be, in microseconds; None without a limit."""
    begin = window.begin
    return -begin.micros if isinstance(begin, Now) and not begin.months else None


def _satisfies(piece: JoinedPiece, number: int, selector: Selector, names: Sequence[str], rows: Numbers) -> Numbers:
    """The indexes of the rows whose tuple of an input satisfies a clause."""
    tuples = piece.tuples[number]
    indexes = tuples.indexes(rows)
    assert indexes is not None
    used, of_rows = np.unique(indexes, return_inverse=True)
    arrays = [tuples.columns[name].take(pa.array(used)) for name in names]
    batch = (
        pa.RecordBatch.from_arrays(arrays, names=list(names))
        if names
        else pa.record_batch({"_none": pa.nulls(len(used))})
    )
    satisfies = np.zeros(len(used), np.bool_)
    for begin in range(0, len(used), BLOCK_ROWS):
        block = Block(batch.slice(begin, BLOCK_ROWS))
        satisfies[begin + selector.rows(block).astype(np.int64)] = True
    return np.flatnonzero(satisfies[of_rows.reshape(-1)])


_NO_COLUMNS = pa.table({"_none": pa.nulls(0)})
