"""Streams that arrive in increments: an engine has the result of each before the next one comes.

A stream arrives over time, so the rows of a result are as fresh as the increments are small. Given all tuples at once,
an engine for streams computes a batch join, which is faster and is no measure of a join of streams. So engines are
compared with equal increments: small ones, and large ones beside them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

INCREMENTS = {"small": 20_000, "bulk": 131_072}
"""The rows of each stream that arrive together."""

LEAST_INCREMENTS = 4
"""The streams have at least this number of increments; shorter streams have smaller ones."""


@dataclass(frozen=True)
class Pace:
    """What an engine needs for all increments but the first, in which it starts."""

    rows: int
    """Those of all streams."""
    seconds: float
    processor_seconds: float
    """Of all processes of the engine."""

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def processor_cost(self) -> float:
        """Seconds of processor time for a million rows."""
        return 1e6 * self.processor_seconds / self.rows


def typical(paces: Sequence[Pace]) -> Pace:
    """The medians of several rounds, which have the same rows."""
    seconds = statistics.median(pace.seconds for pace in paces)
    return Pace(paces[0].rows, seconds, statistics.median(pace.processor_seconds for pace in paces))


def increment_rows(kind: str, rows: int) -> int:
    """The rows of an increment of streams with that many rows.

    >>> increment_rows("small", 524_288), increment_rows("small", 8_192)
    (20000, 2048)
    """
    return min(INCREMENTS[kind], -(-rows // LEAST_INCREMENTS))


def increments(tables: Mapping[str, pa.Table], rows: int) -> Iterator[dict[str, pa.Table]]:
    """The tuples of all streams, that many of each at a time.

    >>> [part["a"].num_rows for part in increments({"a": pa.table({"k": [1, 2, 3]})}, 2)]
    [2, 1]
    """
    for start in range(0, max(map(len, tables.values())), rows):
        yield {name: table.slice(start, rows) for name, table in tables.items()}
