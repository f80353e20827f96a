"""The rows of one query, read from the joined tuples of a continuous join.

They are the same rows, in the same order and with the same positions, as `tureen.results.join_changes` computes for the
query alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tureen.join import Field, JoinOpaque, parse_field
from tureen.joining.join_consumers import JoinConsumer
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedBlock, JoinedPiece
from tureen.joining.shared_factor import SharedFactor
from tureen.joining.shared_join import SharedJoinOfQuery
from tureen.matching import Selector
from tureen.matching.clause_set import simple_factors
from tureen.position import Mark
from tureen.predicate import columns_of
from tureen.results.join_changes import JoinedPart, NewJoinedRows, bounds_at
from tureen.results.join_ready import ReadyJoin
from tureen.results.stream_state import Snapshot
from tureen.stems.index import BLOCK_ROWS, Block
from tureen.window import WHOLE, Now, Window


class OperatorQuery:
    """What a query takes from the joined tuples of its shared join."""

    def __init__(self, ready: ReadyJoin, shared: SharedJoinOfQuery, schemas: Sequence[pa.Schema]) -> None:
        """Prepare a query; `schemas` are those of the shared join's inputs."""
        self.ready, self.shared = ready, shared
        self._fields = [
            Field(shared.index_of(each.input), each.column) for each in map(parse_field, ready.fields.names)
        ]
        inputs = [ready.inputs[number].input for number in shared.inputs]
        self._windows = [(number, entry.window) for number, entry in enumerate(inputs) if entry.window != WHOLE]
        clauses = [simple_factors(entry.clause) for entry in inputs]
        self._selectors: list[tuple[int, Selector, list[str]]] = []
        for number, (entry, simple) in enumerate(zip(inputs, clauses, strict=True)):
            others = tuple(factor for factor in entry.clause if factor not in simple)
            if others:
                names = sorted({name for factor in others for name in columns_of(factor)})
                self._selectors.append((number, Selector(others, schemas[number]), names))
        factors = tuple(SharedFactor.of(factor, shared) for factor in shared.rest if isinstance(factor, JoinOpaque))
        reach = tuple(_reach(entry.window) for entry in inputs)
        self.consumer = JoinConsumer(tuple(clauses), factors, self._columns(len(inputs), factors), reach)

    def _columns(self, inputs: int, factors: Sequence[SharedFactor]) -> tuple[tuple[str, ...], ...]:
        columns: list[set[str]] = [set() for _ in range(inputs)]
        for each in [*self._fields, *(field for factor in factors for _, field in factor.columns)]:
            columns[each.input].add(each.column)
        for number, _, names in self._selectors:
            columns[number].update(names)
        return tuple(tuple(sorted(names)) for names in columns)

    def read(
        self,
        blocks: Sequence[JoinedBlock],
        slot: int,
        since: Mapping[int, int],
        snapshot: Snapshot,
        ends: Mapping[int, int],
    ) -> NewJoinedRows:
        """The rows of consecutive blocks that are new since a vector of marks."""
        tables, ids = [], []
        for block in blocks:
            is_partly_read = any(block.begin[stream] < mark for stream, mark in since.items())
            for piece in block.pieces:
                rows = self._rows(piece, slot, since if is_partly_read else None)
                if len(rows):
                    tables.append(self._table(piece, rows))
                    ids.append(np.stack([piece.ids_at(self.shared.index_of(n), rows) for n in range(len(piece.rows))]))
        marks = {stream: Mark(end) for stream, end in ends.items()}
        if not ids:
            return NewJoinedRows(self.ready.finish.each(_NO_COLUMNS), snapshot, marks, (), {})
        joined, table = np.concatenate(ids, axis=1), pa.concat_tables(tables)
        order, parts = self._parts(joined, since, ends)
        if len(order) > 1:
            table = table.take(pa.array(order))
        placed, first = [], 0
        for part in parts:
            placed.append(
                JoinedPart(part.stream_id, part.marks, table.slice(first, len(part)), part.latest),
            )
            first += len(part)
        return NewJoinedRows(self.ready.finish.each(table), snapshot, marks, placed, {})

    def _rows(self, piece: JoinedPiece, slot: int, since: Mapping[int, int] | None) -> Numbers:
        """The joined tuples of a piece that are rows of the query, new since a vector of marks if there is one."""
        rows = piece.lineages.rows_of(slot)
        if not len(rows):
            return rows
        if since is not None:
            is_new = np.zeros(len(rows), np.bool_)
            for number, relation in enumerate(self.shared.join.relations):
                if relation.stream_id is not None:
                    is_new |= piece.ids_at(number, rows) >= since[relation.stream_id]
            rows = rows[is_new]
        if self._windows and len(rows):
            rows = self._within_windows(piece, rows)
        for number, selector, names in self._selectors:
            if len(rows):
                rows = rows[_satisfies(piece, number, selector, names, rows)]
        for factor in self.consumer.factors:
            if len(rows) and factor not in piece.applied:
                remaining = rows
                rows = rows[factor.satisfying(len(rows), lambda field: piece.values_at(field, remaining))]  # noqa: B023
        return rows

    def _within_windows(self, piece: JoinedPiece, rows: Numbers) -> Numbers:
        """The joined tuples whose tuples are in their windows at the time of the latest of them."""
        times = {number: piece.times_at(number, rows) for number in range(len(piece.rows))}
        known = {number: of_rows for number, of_rows in times.items() if of_rows is not None}
        latest = np.maximum.reduce(list(known.values()))
        inside = np.ones(len(rows), np.bool_)
        for number, window in self._windows:
            if number in known:
                begin, end = bounds_at(window.begin, latest), bounds_at(window.end, latest)
                inside &= True if begin is None else known[number] >= begin
                inside &= True if end is None else known[number] <= end
        return rows[inside]

    def _table(self, piece: JoinedPiece, rows: Numbers) -> pa.Table:
        if not self._fields:
            return pa.table({"_none": pa.nulls(len(rows))})
        return pa.Table.from_arrays([piece.values_at(field, rows) for field in self._fields], schema=self.ready.fields)

    def _parts(
        self, ids: Numbers, since: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Numbers, list[JoinedPart]]:
        """The order of rows, given their ids in the order of FROM, and the parts that they form.

        A row belongs to the last of the streams of which it has a new tuple.
        """
        relations = self.shared.join.relations
        latest, part_of = {}, np.zeros(ids.shape[1], np.int64)
        for index, stream in enumerate(sorted(since)):
            inputs = [self.shared.inputs[number] for number, each in enumerate(relations) if each.stream_id == stream]
            latest[stream] = np.maximum.reduce(ids[inputs])
            part_of[latest[stream] >= since[stream]] = index
        streams = list(latest)
        of_part = np.stack([latest[stream] for stream in streams])[part_of, np.arange(ids.shape[1])]
        order = np.lexsort((*ids[::-1], of_part, part_of))
        parts = []
        for index, stream in enumerate(streams):
            rows = order[part_of[order] == index]
            if len(rows):
                marks = {other: Mark(ends[other] if other < stream else since[other]) for other in streams}
                of_rows = {other: of_stream[rows] for other, of_stream in latest.items()}
                parts.append(JoinedPart(stream, marks, _NO_COLUMNS, of_rows))
        return order, parts


def _reach(window: Window) -> int | None:
    begin = window.begin
    return -begin.micros if isinstance(begin, Now) and not begin.months else None


def _satisfies(piece: JoinedPiece, number: int, selector: Selector, names: Sequence[str], rows: Numbers) -> Numbers:
    """The indexes of the rows whose tuple of an input satisfies a clause."""
    used, of_rows = np.unique(piece.rows[number][rows], return_inverse=True)
    arrays = [piece.tuples[number].columns[name].take(pa.array(used)) for name in names]
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
