"""Joined tuples with their lineages, as the operator of a continuous join returns them.

They contain the values of their tuples, so that they do not keep runs mapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tureen.join import Field
from tureen.joining.join_input import Numbers
from tureen.joining.lineages import Lineages
from tureen.joining.shared_factor import SharedFactor
from tureen.joining.sparse_lineages import SparseLineages


@dataclass(frozen=True)
class PieceTuples:
    """The tuples of one input that occur in joined tuples."""

    ids: Numbers
    times: Numbers | None
    """None for rows of a table, and if no consumer has windows."""
    columns: Mapping[str, pa.Array]
    of_joined: Numbers | None
    """The index of the tuple of each joined tuple; None if these are the tuples of all joined tuples, in order."""

    def indexes(self, rows: Numbers | None) -> Numbers | None:
        """The indexes of the tuples of some joined tuples, or of all with None; None for all of them in order."""
        if rows is None or self.of_joined is None:
            return self.of_joined if rows is None else rows
        return self.of_joined[rows]


@dataclass(frozen=True)
class JoinedPiece:
    """The joined tuples of one block of new tuples; `rows` selects some of them, None all."""

    tuples: Sequence[PieceTuples]
    lineages: Lineages | SparseLineages
    applied: frozenset[SharedFactor]
    """The conditions that are in the lineages."""

    def __len__(self) -> int:
        """The number of joined tuples."""
        return len(self.lineages)

    def ids_at(self, number: int, rows: Numbers | None) -> Numbers:
        """The ids of the tuples of an input in some joined tuples."""
        tuples = self.tuples[number]
        indexes = tuples.indexes(rows)
        return tuples.ids if indexes is None else tuples.ids[indexes]

    def times_at(self, number: int, rows: Numbers | None) -> Numbers | None:
        """The times of the tuples of an input in some joined tuples; None if there are none."""
        tuples = self.tuples[number]
        indexes = tuples.indexes(rows)
        return tuples.times if tuples.times is None or indexes is None else tuples.times[indexes]

    def values_at(self, field: Field, rows: Numbers | None) -> pa.Array:
        """A column of some joined tuples."""
        tuples = self.tuples[field.input]
        indexes, values = tuples.indexes(rows), tuples.columns[field.column]
        return values if indexes is None else values.take(pa.array(indexes))


@dataclass(frozen=True)
class JoinedBlock:
    """All joined tuples with a tuple between two vectors of marks, and with none at or after the second."""

    begin: Mapping[int, int]
    """For each stream, the id of its first new tuple."""
    end: Mapping[int, int]
    pieces: Sequence[JoinedPiece]

    @cached_property
    def size(self) -> int:
        """The number of joined tuples."""
        return sum(map(len, self.pieces))

    def is_before(self, marks: Mapping[int, int]) -> bool:
        """Whether all of its tuples are before a vector of marks."""
        for stream, mark in marks.items():  # noqa: SIM110 - followers by the thousand ask
            if self.end[stream] > mark:
                return False
        return True

    def is_after(self, marks: Mapping[int, int]) -> bool:
        """Whether all of its new tuples are at or after a vector of marks."""
        for stream, mark in marks.items():  # noqa: SIM110 - followers by the thousand ask
            if self.begin[stream] < mark:
                return False
        return True

    @cached_property
    def slots(self) -> set[int]:
        """The slots of the queries that want one of them."""
        return {slot for piece in self.pieces for slot in piece.lineages.slots.tolist()}
