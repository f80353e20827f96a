"""Joined matches: the rows of a join as an answer is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.join import parse_field
from tureen.joining.join_input import JoinInput, Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.row_order import earliest_times, ids_or_first, order_of
from tureen.results.rows.gather import no_rows


@dataclass(frozen=True)
class JoinedMatches:
    """Joined rows: see `tureen.results.rows.matches.Matches`.

    They are in order of the time of their earliest tuple, and then of the ids of their tuples in the order of FROM.
    """

    inputs: Sequence[JoinInput]
    rows: JoinedRows
    known_times: Numbers | None = None
    """The time of the earliest tuple of each row, if the rows are in order already."""
    needs_order: bool = True
    """Whether columns are those of the rows in order; otherwise of the rows as they are."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def first(self, count: int) -> JoinedMatches:
        """The first rows, in order."""
        if len(self) <= count:
            return self
        numbers = np.arange(count)
        return JoinedMatches(self.inputs, self.in_order.take(numbers), self.times[:count])

    def table(self, fields: pa.Schema) -> pa.Table:
        """Columns of the rows, in order if that is needed."""
        if not len(self) and fields.names:
            return no_rows(fields)
        columns: dict[str, pa.Array] = {}
        by_input: dict[int, list[str]] = {}
        for name in fields.names:
            by_input.setdefault(parse_field(name).input, []).append(name)
        joined = self.in_order if self.needs_order else self.rows
        for number, names in by_input.items():
            rows = joined.rows[number]
            values = self.inputs[number].columns_at([parse_field(name).column for name in names], rows)
            columns |= zip(names, values, strict=True)
        if not columns:
            return pa.table({"_none": pa.nulls(len(self))})
        return pa.Table.from_arrays([columns[name] for name in fields.names], schema=fields)

    @cached_property
    def times(self) -> Numbers:
        """The time of the earliest tuple of each row, in order."""
        if self.known_times is not None:
            return self.known_times
        return earliest_times(self.inputs, self.in_order)

    def ids(self) -> npt.NDArray[np.int64]:
        """For each input a line with the tuple ids of all rows, in order."""
        rows = self.in_order.rows
        return np.stack([ids_or_first(entry, rows[number]) for number, entry in enumerate(self.inputs)])

    @cached_property
    def in_order(self) -> JoinedRows:
        """The rows, in order."""
        if self.known_times is not None:
            return self.rows
        order = order_of(self.inputs, self.rows)
        return self.rows if order is None else self.rows.take(order)
