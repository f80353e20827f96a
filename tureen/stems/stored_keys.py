"""Key indexes in the parts of a run's file, or of one beside it: mapped, and verified when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.keys import KeyColumns
from tureen.pot.parts import Parts, PartsWriter
from tureen.stems.key_index import KeyIndex

PARTS_OF_INDEX = 5
"""The number of parts of an index: one for each of its arrays."""


Report = Callable[[DamagedFile], None]
"""Records damage that was repaired in memory and so changed no answer."""


class StoredKeys:
    """The key indexes of a file, each from some parts on."""

    def __init__(
        self,
        parts: Parts,
        first: int,
        columns: Sequence[KeyColumns],
        rows: int,
        report: Report,
    ) -> None:
        """The indexes of a run with that many rows; the first one begins with part `first`."""
        self._parts, self._rows, self._report = parts, rows, report
        self._begins = {key: first + PARTS_OF_INDEX * number for number, key in enumerate(columns)}
        self._opened: dict[KeyColumns, KeyIndex] = {}

    def __contains__(self, columns: KeyColumns) -> bool:
        """Whether there is an index by these columns that was not found to be damaged."""
        return columns in self._begins

    def is_open(self, columns: KeyColumns) -> bool:
        """Whether such an index was verified before."""
        return columns in self._opened

    def find(self, columns: KeyColumns) -> KeyIndex | None:
        """The index by columns; None if there is none, or it is damaged, which is reported."""
        index = self._opened.get(columns)
        begin = self._begins.get(columns)
        if index is not None or begin is None:
            return index
        try:
            index = self._opened[columns] = self._read(begin, len(columns))
        except DamagedFile as damage:
            self._begins.pop(columns, None)
            self._report(damage)
        return index

    def _read(self, first: int, columns: int) -> KeyIndex:
        words, directory, keys, starts, rows = (self._parts.read(first + number) for number in range(PARTS_OF_INDEX))
        index = KeyIndex(
            np.frombuffer(words, np.uint64),
            np.frombuffer(directory, np.uint32),
            np.frombuffer(keys, np.int64).reshape(columns, -1),
            np.frombuffer(starts, np.uint32),
            np.frombuffer(rows, np.int32),
        )
        if not _is_within_bounds(index, self._rows):
            raise self._parts.damaged("a key index points outside of its run")
        return index


def write_key_index(file: BinaryIO, name: str, index: KeyIndex) -> None:
    """Write an index to a file of its own."""
    parts = PartsWriter(file, name)
    add_key_index(parts, index)
    parts.finish()


def open_key_index(path: Path, columns: KeyColumns, rows: int, report: Report) -> StoredKeys:
    """Map such a file, of a run with that many rows."""
    return StoredKeys(Parts(path), 0, [columns], rows, report)


def add_key_index(parts: PartsWriter, index: KeyIndex) -> None:
    """Write an index to the next parts of a file."""
    for array in index.arrays:
        parts.add(pa.py_buffer(np.ascontiguousarray(array)))


def _is_within_bounds(index: KeyIndex, rows: int) -> bool:
    """Whether all numbers point to an entry; compiled loops do not check that."""
    groups = index.keys.shape[1]
    return (
        _is_power_of_two(len(index.filter))
        and _is_power_of_two(len(index.directory) - 1)
        and len(index.starts) == groups + 1
        and _ascends_to(index.directory, groups)
        and _ascends_to(index.starts, len(index.rows))
        and bool(np.all((index.rows >= 0) & (index.rows < rows)))
    )


def _is_power_of_two(size: int) -> bool:
    return size > 1 and size & (size - 1) == 0


def _ascends_to(numbers: npt.NDArray[np.uint32], last: int) -> bool:
    return int(numbers[-1]) == last and bool(np.all(numbers[:-1] <= numbers[1:]))
