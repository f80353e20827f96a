"""A block of punctuations of a stream, arranged by column, so that all of them are handled together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tureen.closed.pattern import Code, Pattern


class ColumnValues(NamedTuple):
    """Values of one column that punctuations close, and the number of the punctuation of each."""

    codes: list[Code]
    numbers: list[int]


class PatternBlock(NamedTuple):
    """Consecutive punctuations."""

    first: int
    """The number of the first one."""
    end: int
    """The number after the last one."""
    values: Mapping[str, ColumnValues]
    """Those about values of one column."""
    others: Sequence[tuple[int, Pattern]]
    """All others, with their numbers."""

    def __len__(self) -> int:
        """The number of punctuations."""
        return self.end - self.first

    @classmethod
    def of_stored(cls, first: int, stored: Iterable[Mapping[str, Any]]) -> PatternBlock:
        """Arrange punctuations that are given as they are stored (`Pattern.as_json`).

        >>> block = PatternBlock.of_stored(7, [{"k": [1]}, {"k": [2, 3]}, {"k": [4], "m": [5]}])
        >>> block.values["k"], [number for number, _ in block.others], block.end
        (ColumnValues(codes=[1, 2, 3], numbers=[7, 8, 8]), [9], 10)
        """
        values: dict[str, ColumnValues] = {}
        others: list[tuple[int, Pattern]] = []
        number = first
        for pattern in stored:
            # Most are about one value: for these, no object is created.
            name = next(iter(pattern))
            codes = pattern[name]
            if len(pattern) == 1 and isinstance(codes, list):
                column = values.get(name)
                if column is None:
                    column = values[name] = ColumnValues([], [])
                column.codes.extend(codes)
                column.numbers.extend([number] * len(codes))
            else:
                others.append((number, Pattern.from_json(pattern)))
            number += 1
        return cls(first, number, values, others)
