"""What the rows of followed queries over one join have in common: columns, windows and outputs.

Queries with the same shape differ in which joined tuples they want, so these can be gathered for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tureen.join import Field, parse_field
from tureen.joining.join_input import Numbers
from tureen.joining.joined_block import JoinedPiece
from tureen.joining.shared_join import SharedJoinOfQuery
from tureen.query import Output
from tureen.results.changes.join_changes import bounds_at
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.rows.finish import Finish
from tureen.results.rows.gather_kernels import ascends
from tureen.window import WHOLE, Window


@dataclass(frozen=True)
class RowShape:
    """The rows of a query, apart from the conditions that select them; numbers of inputs are those of the join."""

    inputs: tuple[int, ...]
    """The inputs in the order of FROM."""
    streams: tuple[int | None, ...]
    """The stream of each of the inputs; None for a table."""
    fields: tuple[Field, ...]
    windows: tuple[tuple[int, Window], ...]
    outputs: tuple[Output, ...]
    schema: pa.Schema = field(compare=False)
    """The columns of the fields, as the outputs name them."""
    finish: Finish = field(compare=False)

    @classmethod
    def of(cls, ready: ReadyJoin, shared: SharedJoinOfQuery) -> RowShape:
        """The shape of a query's rows."""
        fields = [Field(shared.index_of(field.input), field.column) for field in map(parse_field, ready.fields.names)]
        windows = [(number, ready.inputs[of_query].input.window) for number, of_query in enumerate(shared.inputs)]
        inputs = tuple(map(shared.index_of, range(len(shared.inputs))))
        return cls(
            inputs,
            tuple(shared.join.relations[number].stream_id for number in inputs),
            tuple(fields),
            tuple((number, window) for number, window in windows if window != WHOLE),
            ready.query.outputs,
            ready.fields,
            ready.finish,
        )

    @property
    def calls_functions(self) -> bool:
        """Whether an output calls a user function, which may fail or not end: its queries wait for it alone."""
        return self.finish.sql is not None and "#" in self.finish.sql

    def within_windows(self, piece: JoinedPiece, rows: Numbers) -> Numbers:
        """The joined tuples whose tuples are in their windows at the time of the latest of them."""
        if not self.windows or not len(rows):
            return rows
        times = {number: piece.times_at(number, rows) for number in range(len(piece.tuples))}
        known = {number: of_rows for number, of_rows in times.items() if of_rows is not None}
        latest = np.maximum.reduce(list(known.values()))
        inside = np.ones(len(rows), np.bool_)
        for number, window in self.windows:
            if number in known:
                begin, end = bounds_at(window.begin, latest), bounds_at(window.end, latest)
                inside &= True if begin is None else known[number] >= begin
                inside &= True if end is None else known[number] <= end
        return rows[inside]

    def ids(self, piece: JoinedPiece, rows: Numbers | None) -> Numbers:
        """The tuple ids of some joined tuples, or of all with None, in the order of FROM."""
        return np.stack([piece.ids_at(number, rows) for number in self.inputs])

    def table(self, piece: JoinedPiece, rows: Numbers | None) -> pa.Table:
        """The columns of some joined tuples, or of all with None, that the outputs read."""
        if not self.fields:
            return pa.table({"_none": pa.nulls(len(piece) if rows is None else len(rows))})
        return pa.Table.from_arrays([piece.values_at(field, rows) for field in self.fields], schema=self.schema)

    def latest(self, ids: Numbers) -> dict[int, Numbers]:
        """For each stream, ascending, the latest tuple of each row, given the ids of all its tuples."""
        inputs: dict[int, list[int]] = {}
        for number, stream in enumerate(self.streams):
            if stream is not None:
                inputs.setdefault(stream, []).append(number)
        return {stream: np.maximum.reduce(ids[inputs[stream]]) for stream in sorted(inputs)}


@dataclass(frozen=True)
class RowOrder:
    """The order in which the rows of a query are read, and the stream by which each is new.

    A row is new by the last of the streams of which it has a new tuple.
    """

    order: Numbers | None
    """The numbers of the rows in that order; None if they are in order already, as those of one partner each are."""
    part_of: Numbers
    """For each row in that order, the index of the stream."""
    latest: Mapping[int, Numbers]
    """For each stream, the latest tuple of each row in that order."""

    @classmethod
    def of(cls, shape: RowShape, ids: Numbers, since: Mapping[int, int], first_by: Numbers | None = None) -> RowOrder:
        """Order rows that are new since a vector of marks, given their tuple ids; first by other numbers, if any."""
        latest = shape.latest(ids)
        part_of, of_part = np.zeros(ids.shape[1], np.int64), next(iter(latest.values())).copy()
        for index, (stream, of_rows) in enumerate(latest.items()):
            is_new = of_rows >= since[stream]
            part_of[is_new] = index
            np.copyto(of_part, of_rows, where=is_new)
        keys = np.stack([*(() if first_by is None else (first_by,)), part_of, of_part, *ids])
        if ascends(keys):
            return cls(None, part_of, latest)
        order = np.lexsort(keys[::-1])
        return cls(order, part_of[order], {stream: of_rows[order] for stream, of_rows in latest.items()})

    def table(self, table: pa.Table) -> pa.Table:
        """The rows of a table in that order."""
        return table if self.order is None else table.take(pa.array(self.order))
