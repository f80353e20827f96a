"""The rows of one input of a join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.join import Field
from tureen.keys import KeyColumns

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class JoinInput(Protocol):
    """Rows that satisfy the clause of an input within its window, numbered from 0."""

    def __len__(self) -> int:
        """The number of rows."""

    def column(self, name: str) -> pa.Array:
        """A column of all rows."""

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some rows, in that order; a row of -1 has NULLs."""

    @property
    def times(self) -> Numbers | None:
        """The times of all rows; None if the input has no time."""

    @property
    def ids(self) -> Numbers:
        """The tuple ids of all rows; for rows that are no tuples, their numbers."""

    def times_at(self, rows: Numbers) -> Numbers | None:
        """The times of some rows, all of which exist."""

    def ids_at(self, rows: Numbers) -> Numbers:
        """The ids of some rows, all of which exist."""

    def may_probe(self, keys: int) -> bool:
        """Whether rows with that many keys may be found by an index in less time than by scanning all rows."""

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers] | None:
        """Rows by key, from an index: pairs of an index of a key and a row; None if scanning all rows is cheaper.

        A column is a name and the domain in which it is compared; the keys of `tureen.stems.key_index` have a line for
        each. Rows with other values that have the same hash may be among them.
        """


class LateralInput(JoinInput, Protocol):
    """An input whose rows are computed from the partners of other rows; see `tureen.join.LateralJoin`."""

    fields: Sequence[Field]
    """The columns that they are computed from."""
    depends_on_order: bool
    """Whether a row depends on the order of its partners."""

    def compute(self, partners: pa.Table, of_rows: Numbers, rows: int) -> None:
        """Compute a row for each of `rows` rows, given the columns of all partners and the row that each belongs to.

        The partners of each row are in order.
        """


def take_or_null(column: pa.Array, rows: Numbers) -> pa.Array:
    """Values of a column by row number; a row of -1 is NULL."""
    missing = rows < 0
    if not missing.any():
        return column.take(pa.array(rows))
    return column.take(pa.array(np.where(missing, 0, rows), mask=missing))
