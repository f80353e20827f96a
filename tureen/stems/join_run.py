"""Join runs: joined tuples of streams in a file, as the ids of their tuples.

A file has one part for each stream with the ids, and one with the time of the earliest tuple of each row. Rows are in
order of that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import DamagedFile
from tureen.pot.parts import Parts, PartsWriter
from tureen.stems.run import log_damage
from tureen.stems.stored_keys import Report
from tureen.stems.tuple_order import order_by_time

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class JoinedTuples:
    """Joined tuples in memory: for each stream the tuple ids, and the time of the earliest tuple of each row."""

    ids: Sequence[Numbers]
    times: Numbers

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.times)

    def take(self, rows: npt.NDArray[Any] | slice) -> JoinedTuples:
        """Some rows, by their numbers, by a flag for each, or an interval."""
        return JoinedTuples([ids[rows] for ids in self.ids], self.times[rows])

    def in_order_of(self, streams: Sequence[int]) -> JoinedTuples:
        """The rows in order of time, and then of the ids of streams, the most significant first."""
        order = self.order_of(streams)
        return self if order is None else self.take(order)

    def order_of(self, streams: Sequence[int]) -> Numbers | None:
        """The permutation into that order; None if the rows are in it already."""
        return order_by_time(self.times, [self.ids[stream] for stream in streams])


def concatenated(streams: int, parts: Sequence[JoinedTuples]) -> JoinedTuples:
    """The rows of several parts."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    ids = [np.concatenate([none, *(part.ids[index] for part in parts)]) for index in range(streams)]
    return JoinedTuples(ids, np.concatenate([none, *(part.times for part in parts)]))


def write_join_run(file: BinaryIO, name: str, tuples: JoinedTuples) -> None:
    """Write rows, which are in order, to an empty file of that name."""
    writer = PartsWriter(file, name)
    for column in (*tuples.ids, tuples.times):
        writer.add(pa.py_buffer(np.ascontiguousarray(column, np.int64)))
    writer.finish()


class OpenJoinRun:
    """A mapped join run; its columns are verified when they are first read."""

    def __init__(self, path: Path, report: Report = log_damage) -> None:
        """Map a file; raises DamagedFile, or FileNotFoundError if it does not exist."""
        self._parts, self._report = Parts(path), report

    @cached_property
    def tuples(self) -> JoinedTuples:
        """The rows; damage is reported and raised."""
        try:
            columns = [np.frombuffer(self._parts.read(number), np.int64) for number in range(len(self._parts))]
        except DamagedFile as damage:
            self._report(damage)
            raise
        return JoinedTuples(columns[:-1], columns[-1])
