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
    """The tuples of one input that occur in joined tuples, each once."""

    ids: Numbers
    times: Numbers | None
    """None for rows of a table."""
    columns: Mapping[str, pa.Array]


@dataclass(frozen=True)
class JoinedPiece:
    """The joined tuples of one block of new tuples."""

    tuples: Sequence[PieceTuples]
    rows: Sequence[Numbers]
    """For each input, the index of the tuple of each joined tuple."""
    lineages: Lineages | SparseLineages
    applied: frozenset[SharedFactor]
    """The conditions that are in the lineages."""

    def __len__(self) -> int:
        """The number of joined tuples."""
        return len(self.lineages)

    def ids_at(self, number: int, rows: Numbers) -> Numbers:
        """The ids of the tuples of an input in some joined tuples."""
        return self.tuples[number].ids[self.rows[number][rows]]

    def times_at(self, number: int, rows: Numbers) -> Numbers | None:
        """The times of the tuples of an input in some joined tuples; None for a table."""
        times = self.tuples[number].times
        return None if times is None else times[self.rows[number][rows]]

    def values_at(self, field: Field, rows: Numbers) -> pa.Array:
        """A column of some joined tuples."""
        return self.tuples[field.input].columns[field.column].take(pa.array(self.rows[field.input][rows]))


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
