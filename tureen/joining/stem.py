"""The SteM of one input of a continuous join: the tuples that it has received so far, found by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tureen.joining.join_input import Flags, JoinInput, Numbers
from tureen.keys import KeyColumns

Ids = tuple[int, int]
"""The first tuple id of an interval, and the one after its last."""


class Stem(JoinInput, Protocol):
    """Tuples of a stream with ids in an interval, or rows of a table; always probed by key index.

    The numbers of rows may include others, which `probe` and `rows_within` leave out.
    """

    def rows_within(self) -> Numbers:
        """The numbers of its rows, ascending."""

    def probe(self, columns: KeyColumns, keys: Numbers, valid: Flags) -> tuple[Numbers, Numbers]:
        """See `JoinInput.probe`."""

    def least_time(self) -> int | None:
        """A time before which `probe` finds no tuple; None if there is none."""

    def rows_of(self, ids: Numbers) -> Numbers:
        """The numbers of the rows with these ids; -1 where there is none."""

    def columns_at(self, names: Sequence[str], rows: Numbers) -> list[pa.Array]:
        """Columns of some rows, in that order."""
