"""Which rows satisfy which queries of a template: by an index of the values, or by a join with them.

The queries of a template are rows of values. If the conditions with parameters are comparisons of columns with values,
the values are compiled into a query run, like clauses, and matched with new rows as arriving tuples are. Any other
conditions are evaluated as a join of rows and values, in DuckDB.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered
from tureen.errors import LimitExceeded, QueryFailed
from tureen.evaluation.duck import run
from tureen.matching import Buffers, describe, match_block
from tureen.queries import QueryRun
from tureen.query import Expression
from tureen.stems.cells.lineage_pairs import pairs_of
from tureen.stems.index import Block
from tureen.stems.run import cut

NUMBER = "_number"
"""The column with the number of the query that a row of values belongs to."""

BATCH = 1 << 16
"""The number of rows that are joined with the values at a time."""

MOST_RAISING = 64
"""The number of queries that may raise an error on a batch of rows; with more, following the template fails."""

Numbers = npt.NDArray[np.int64]

TextOfColumn = Callable[[str], str]
"""The name of a column as users know it."""


class Pairing(Protocol):
    """Finds the queries of a template whose conditions with parameters rows satisfy.

    The rows are tuples of its stream, or joined rows, that satisfy the conditions without parameters.
    """

    @property
    def columns(self) -> Sequence[str]:
        """The columns of the rows that it reads."""

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Indexes of rows, and the numbers of the queries that they satisfy; ordered by both."""

    def describe(self, text_of: TextOfColumn) -> dict[str, Any]:
        """How pairs are found, for EXPLAIN."""


@dataclass(frozen=True, eq=False)
class IndexedPairing:
    """Values compiled into a query run."""

    queries: QueryRun
    _buffers: Buffers = field(default_factory=Buffers)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def columns(self) -> Sequence[str]:
        """The columns of the rows that it reads."""
        return self.queries.names

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Match the rows block by block; see `Pairing`."""
        indexes, numbers, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        if not len(self.queries):
            return indexes[0], numbers[0]
        for batch in cut(rows.select(list(self.queries.names))):
            with self._lock:
                cells = match_block(Block(batch), self.queries, self._buffers).batch
                row_indexes, query_numbers = pairs_of(cells, batch.num_rows)
            indexes.append(row_indexes + start)
            numbers.append(query_numbers)
            start += batch.num_rows
        return np.concatenate(indexes), np.concatenate(numbers)

    def describe(self, text_of: TextOfColumn) -> dict[str, Any]:
        """How pairs are found, for EXPLAIN."""
        about = describe(self.queries)
        by_key = [
            {
                **key,
                "column": text_of(key["column"]),
                "residual": None if key["residual"] is None else text_of(key["residual"]),
            }
            for key in about["by_key"]
        ]
        return {
            "way": "an index of the values",
            "columns": list(map(text_of, self.columns)),
            **about,
            "by_key": by_key,
        }


@dataclass(frozen=True, eq=False)
class CombinedPairing:
    """Values in several files, with a pairing for each."""

    pairings: Sequence[Pairing]

    @property
    def columns(self) -> Sequence[str]:
        """The columns of the rows that it reads."""
        return list(dict.fromkeys(name for pairing in self.pairings for name in pairing.columns))

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Match the rows with each file; see `Pairing`."""
        pairs = [pairing.pairs(rows) for pairing in self.pairings]
        indexes, numbers = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        order = np.lexsort((numbers, indexes))
        return indexes[order], numbers[order]

    def describe(self, text_of: TextOfColumn) -> dict[str, Any]:
        """How pairs are found in the first file, and the number of files."""
        return {**self.pairings[0].describe(text_of), "files": len(self.pairings)}


@dataclass(frozen=True, eq=False)
class JoinedPairing:
    """Values joined with the rows on the template's conditions with parameters."""

    condition: Expression | None
    values: pa.Table
    """The values of each query, and its NUMBER."""
    columns: Sequence[str]

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Join; see `Pairing`."""
        sorted_pairs = [np.empty((2, 0), np.int64)]
        table = numbered(rows)
        for start in range(0, table.num_rows, BATCH):
            pairs = np.concatenate(self._join(table.slice(start, BATCH), self.values, [MOST_RAISING]), axis=1)
            sorted_pairs.append(pairs[:, np.lexsort((pairs[1], pairs[0]))])
        indexes, numbers = np.concatenate(sorted_pairs, axis=1)
        return indexes, numbers

    def _join(self, rows: pa.Table, values: pa.Table, failures_left: list[int]) -> list[Numbers]:
        """The pairs of the queries with these values; a query that raises an error has none."""
        where = "" if self.condition is None else f" WHERE {self.condition.sql}"
        try:
            pairs = run(f"SELECT {ROW}, {NUMBER} FROM rows, queries{where}", {"rows": rows, "queries": values}, "it")
        except LimitExceeded:
            raise
        except QueryFailed:
            failures_left[0] -= len(values) == 1
            if failures_left[0] < 0:
                raise
            half = len(values) // 2
            halves = [values.slice(0, half), values.slice(half)] if half else []
            pairs_of_halves = [self._join(rows, part, failures_left) for part in halves]
            return [np.empty((2, 0), np.int64), *chain.from_iterable(pairs_of_halves)]
        return [np.stack([pairs.column(side).to_numpy().astype(np.int64) for side in (0, 1)])]

    def describe(self, text_of: TextOfColumn) -> dict[str, Any]:
        """How pairs are found, for EXPLAIN."""
        return {"way": "a join of rows and values", "columns": list(map(text_of, self.columns))}
