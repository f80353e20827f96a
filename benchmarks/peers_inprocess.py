"""The same selections by engines in this process, which have rows and results in memory and store nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from benchmarks.workload import COLUMNS, truth

Matrix = npt.NDArray[np.bool_]
"""A row for each tuple, a column for each query."""


class Peer(Protocol):
    """An engine that evaluates many conditions over a table of tuples."""

    name: str
    in_bulk: bool
    """Whether it runs faster on all rows at once, because each query has a high fixed cost."""

    def __init__(self, wheres: Sequence[str]) -> None:
        """Prepare for these conditions."""

    def run(self, table: pa.Table) -> None:
        """Evaluate all conditions, and discard the matches."""

    def matches(self, table: pa.Table) -> Matrix:
        """The matches of all conditions, for verification."""


class RangeJoin:
    """DuckDB: a join of the tuples with a table of the queries, by ranges."""

    name = "DuckDB, a range join of tuples and queries"
    in_bulk = False

    def __init__(self, wheres: Sequence[str]) -> None:
        """Put the queries into a table: the smallest and the largest value of each column."""
        bounds = np.array([bounds_of(where) for where in wheres], np.int32).reshape(len(wheres), len(COLUMNS), 2)
        columns = {"q": pa.array(np.arange(len(wheres), dtype=np.int32))}
        for index, name in enumerate(COLUMNS):
            columns[f"{name}_low"], columns[f"{name}_high"] = (pa.array(bounds[:, index, end]) for end in (0, 1))
        self._count = len(wheres)
        self._duck = duckdb.connect()
        self._duck.register("queries", pa.table(columns))
        join_condition = " AND ".join(f"{name} BETWEEN {name}_low AND {name}_high" for name in COLUMNS)
        self._sql = f"SELECT q, i FROM tuples JOIN queries ON {join_condition}"

    def run(self, table: pa.Table) -> None:
        """Read all pairs, and discard them."""
        for _ in self._pairs(table):
            pass

    def matches(self, table: pa.Table) -> Matrix:
        """The pairs as a matrix."""
        matrix = np.zeros((len(table), self._count), np.bool_)
        for batch in self._pairs(table):
            matrix[batch.column("i").to_numpy(), batch.column("q").to_numpy()] = True
        return matrix

    def _pairs(self, table: pa.Table) -> pa.RecordBatchReader:
        self._duck.register("tuples", table.append_column("i", pa.array(np.arange(len(table), dtype=np.int32))))
        return self._duck.sql(self._sql).to_arrow_reader(65_536)


class QueryByQuery:
    """DuckDB: a query for each standing query."""

    name = "DuckDB, a query for each"
    in_bulk = True

    def __init__(self, wheres: Sequence[str]) -> None:
        """Prepare the texts."""
        self._texts = [f"SELECT i FROM tuples WHERE {where}" for where in wheres]
        self._duck = duckdb.connect()

    def run(self, table: pa.Table) -> None:
        """Run all queries."""
        self._register(table)
        for text in self._texts:
            self._duck.sql(text).to_arrow_table()

    def matches(self, table: pa.Table) -> Matrix:
        """Their rows as a matrix."""
        self._register(table)
        matrix = np.zeros((len(table), len(self._texts)), np.bool_)
        for number, text in enumerate(self._texts):
            matrix[self._duck.sql(text).to_arrow_table().column("i").to_numpy(), number] = True
        return matrix

    def _register(self, table: pa.Table) -> None:
        self._duck.register("tuples", table.append_column("i", pa.array(np.arange(len(table), dtype=np.int32))))


class SingleSelect:
    """polars: all predicates in one select, planned lazily."""

    name = "polars, all predicates in one select"
    in_bulk = False

    def __init__(self, wheres: Sequence[str]) -> None:
        """Translate the conditions."""
        self._predicates = [_predicate(where).alias(str(number)) for number, where in enumerate(wheres)]

    def run(self, table: pa.Table) -> None:
        """Evaluate them all."""
        self._select(table)

    def matches(self, table: pa.Table) -> Matrix:
        """Their masks as a matrix."""
        matrix: Matrix = self._select(table).to_numpy()
        return matrix

    def _select(self, table: pa.Table) -> pl.DataFrame:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame.lazy().select(self._predicates).collect()


PEERS: tuple[type[Peer], ...] = (RangeJoin, QueryByQuery, SingleSelect)


def bounds_of(where: str) -> list[tuple[int, int]]:
    """The smallest and largest value of each column that satisfies a condition of the workload.

    >>> bounds_of("b BETWEEN 3 AND 5 AND a < 10")
    [(-1, 9), (3, 5), (-1, 256), (-1, 256)]
    """
    bounds = dict.fromkeys(COLUMNS, (-1, 256))
    for column, sign, low, high in _factors(where):
        bounds[column] = {
            "=": (low, low),
            "<": (-1, low - 1),
            "<=": (-1, low),
            ">": (low + 1, 256),
            ">=": (low, 256),
            "BETWEEN": (low, high),
        }[sign]
    return list(bounds.values())


def _factors(where: str) -> list[tuple[str, str, int, int]]:
    """The factors of a condition: column, operator, first and last constant."""
    words, factors = where.split(), []
    while words:
        size = 5 if words[1] == "BETWEEN" else 3
        factors.append((words[0], words[1], int(words[2]), int(words[size - 1])))
        words = words[size + 1 :]
    return factors


def _predicate(where: str) -> pl.Expr:
    parts = []
    for name, sign, low, high in _factors(where):
        column = pl.col(name)
        parts.append(
            {
                "=": column == low,
                "<": column < low,
                "<=": column <= low,
                ">": column > low,
                ">=": column >= low,
                "BETWEEN": column.is_between(low, high),
            }[sign]
        )
    return pl.all_horizontal(parts)


def verify(peer: Peer, wheres: Sequence[str], table: pa.Table) -> None:
    """Check a peer's matches against numpy's."""
    expected = np.stack([truth(table, where) for where in wheres], axis=1)
    assert np.array_equal(peer.matches(table), expected), f"{peer.name} gives wrong answers"


def rate_of(
    run: Callable[[int], None],
    min_rows: int,
    max_rows: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Rows per second of `run(rows)`, with four times more rows until it takes `seconds` or reaches `max_rows`."""
    rows = min(min_rows, max_rows)
    while True:
        began = clock()
        run(rows)
        elapsed = clock() - began
        if elapsed >= seconds or rows == max_rows:
            return rows / elapsed
        rows = min(4 * rows, max_rows)
