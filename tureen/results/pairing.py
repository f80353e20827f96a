"""Which rows satisfy which queries of a template: by an index of the values, or by a join with them.

Queries of one shape are rows of values. Where each is a conjunction of comparisons of columns with values, they are
compiled into a query run like clauses of their own, which is matched with new rows as it is at arrival. Any other
condition is a join of rows and values, which DuckDB does.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered
from tureen.errors import LimitExceeded, QueryFailed
from tureen.evaluation.duck import run
from tureen.matching import Buffers, describe, match_block
from tureen.predicate import Clause
from tureen.queries import QueryRun
from tureen.query import Expression
from tureen.stems.cells.lineage_pairs import pairs_of
from tureen.stems.index import Block
from tureen.stems.run import cut

NUMBER = "_number"
"""The column that says which query of the template some values make."""

BATCH = 1 << 16
"""How many rows are joined with the values at a time."""

MOST_RAISING = 64
"""Queries of a template that may raise on a batch of rows; beyond, following the template fails."""

Numbers = npt.NDArray[np.int64]


class Pairing(Protocol):
    """A way to find the queries of a template that rows satisfy."""

    @property
    def common(self) -> Clause:
        """Factors that all of the queries have, and that the rows satisfy already."""

    @property
    def columns(self) -> Sequence[str]:
        """The stream's columns that it looks at."""

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Rows, by their place, and the numbers of queries that they satisfy; ordered by both."""

    def describe(self) -> dict[str, Any]:
        """How it is done, for people."""


@dataclass(frozen=True, eq=False)
class Indexed:
    """Values compiled into a query run."""

    queries: QueryRun
    common: Clause
    _buffers: Buffers = field(default_factory=Buffers)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def columns(self) -> Sequence[str]:
        """The stream's columns that it looks at."""
        return self.queries.names

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Match the rows block by block; see `Pairing`."""
        places, numbers, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        if not len(self.queries):
            return places[0], numbers[0]
        for batch in cut(rows.select(list(self.queries.names))):
            with self._lock:
                found, queries = pairs_of(match_block(Block(batch), self.queries, self._buffers).batch, batch.num_rows)
            places.append(found + start)
            numbers.append(queries)
            start += batch.num_rows
        return np.concatenate(places), np.concatenate(numbers)

    def describe(self) -> dict[str, Any]:
        """How it is done, for people."""
        return {"way": "an index of the values", "columns": list(self.columns), **describe(self.queries)}


@dataclass(frozen=True, eq=False)
class Parts:
    """Values in several files, each matched in its own way; the factors that all queries have are the same."""

    parts: Sequence[Pairing]

    @property
    def common(self) -> Clause:
        """Factors that all of the queries have, and that the rows satisfy already."""
        return self.parts[0].common

    @property
    def columns(self) -> Sequence[str]:
        """The stream's columns that it looks at."""
        return list(dict.fromkeys(name for part in self.parts for name in part.columns))

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Match the rows with each file; see `Pairing`."""
        found = [part.pairs(rows) for part in self.parts]
        places, numbers = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
        order = np.lexsort((numbers, places))
        return places[order], numbers[order]

    def describe(self) -> dict[str, Any]:
        """How it is done, for people: as in the first file, and how many files there are."""
        return {**self.parts[0].describe(), "files": len(self.parts)}


@dataclass(frozen=True, eq=False)
class Joined:
    """Values joined with the rows on the template's WHERE clause."""

    condition: Expression | None
    values: pa.Table
    """The values of each query, and its NUMBER."""
    columns: Sequence[str]
    common: Clause = ()

    def pairs(self, rows: pa.Table) -> tuple[Numbers, Numbers]:
        """Join; see `Pairing`."""
        found = [np.empty((2, 0), np.int64)]
        table = numbered(rows)
        for start in range(0, table.num_rows, BATCH):
            some = np.concatenate(self._join(table.slice(start, BATCH), self.values, [MOST_RAISING]), axis=1)
            found.append(some[:, np.lexsort((some[1], some[0]))])
        places, numbers = np.concatenate(found, axis=1)
        return places, numbers

    def _join(self, rows: pa.Table, values: pa.Table, patience: list[int]) -> list[Numbers]:
        """The pairs of some queries; one that raises on some row has none, and does not stop the others."""
        only = "" if self.condition is None else f" WHERE {self.condition.sql}"
        try:
            pairs = run(f"SELECT {ROW}, {NUMBER} FROM rows, queries{only}", {"rows": rows, "queries": values}, "it")
        except LimitExceeded:
            raise
        except QueryFailed:
            patience[0] -= len(values) == 1
            if patience[0] < 0:
                raise
            half = len(values) // 2
            parts = [values.slice(0, half), values.slice(half)] if half else []
            return [np.empty((2, 0), np.int64), *(pair for part in parts for pair in self._join(rows, part, patience))]
        return [np.stack([pairs.column(place).to_numpy().astype(np.int64) for place in (0, 1)])]

    def describe(self) -> dict[str, Any]:
        """How it is done, for people."""
        return {"way": "a join of rows and values", "columns": list(self.columns)}
