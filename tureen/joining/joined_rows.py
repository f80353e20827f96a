"""Joined rows: for each input, the number of the row that takes part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tureen.joining.join_input import Numbers

NO_ROW = -1
"""The number of the row of NULLs that an outer join adds."""


class _AllRows(Mapping[int, Numbers]):
    """The numbers of all rows of one input, which are written only if they are asked for."""

    def __init__(self, number: int, size: int) -> None:
        self._number, self._size = number, size

    def __getitem__(self, number: int) -> Numbers:
        if number != self._number:
            raise KeyError(number)
        return self._rows

    def __iter__(self) -> Iterator[int]:
        return iter((self._number,))

    def __len__(self) -> int:
        return 1

    @cached_property
    def _rows(self) -> Numbers:
        return np.arange(self._size)


@dataclass(frozen=True)
class JoinedRows:
    """Combinations of rows, as one array of row numbers for each input."""

    rows: Mapping[int, Numbers]
    size: int
    is_whole: bool = False
    """Whether these are all rows of one input, in order."""

    @classmethod
    def of_input(cls, number: int, size: int) -> JoinedRows:
        """All rows of one input."""
        return cls(_AllRows(number, size), size, is_whole=True)

    def __len__(self) -> int:
        """The number of combinations."""
        return self.size

    def take(self, selected: Numbers) -> JoinedRows:
        """Some combinations; -1 stands for one of NULLs."""
        if self.is_whole and self.size:
            return JoinedRows(dict.fromkeys(self.rows, selected), len(selected))
        missing = selected < 0
        if not missing.any():
            return JoinedRows({number: rows[selected] for number, rows in self.rows.items()}, len(selected))
        if not self.size:
            empty = np.full(len(selected), NO_ROW)
            return JoinedRows(dict.fromkeys(self.rows, empty), len(selected))
        return JoinedRows(
            {number: np.where(missing, NO_ROW, rows[selected]) for number, rows in self.rows.items()}, len(selected)
        )

    def beside(self, other: JoinedRows) -> JoinedRows:
        """Each combination together with the one of the same index in another."""
        return JoinedRows({**self.rows, **other.rows}, self.size)


def concat(parts: Sequence[JoinedRows]) -> JoinedRows:
    """Combinations of the same inputs, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    rows = {number: np.concatenate([part.rows[number] for part in parts]) for number in parts[0].rows}
    return JoinedRows(rows, sum(len(part) for part in parts))
