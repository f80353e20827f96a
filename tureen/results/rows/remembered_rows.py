"""Remembered rows: the tuples of runs that satisfy the clauses of joins, as a process selected them before.

Neither a run nor a clause ever changes. So a join that is invoked again selects only the tuples of new runs and of
those at the edges of its windows. Of the others, it has the compared columns one after the other, and does not read
them from all over their runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.matching import Selector
from tureen.pot.registered import RegisteredInput
from tureen.results.snapshot.segment import Hits, Segment

REMEMBERED_BYTES = 1 << 26
"""The memory for remembered rows of a process; the least recently used are dropped."""

REMEMBERED_COLUMNS = 3
"""The number of columns that are remembered of the same rows."""

_COLUMN_BYTES = 8
"""The maximum size of a value of a remembered column: only plain numbers are."""


class _Rows(NamedTuple):
    """The rows of a run, see `Hits`; without the run itself, whose file can be removed."""

    rows: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]
    columns: dict[str, pa.Array]

    @property
    def bytes(self) -> int:
        """Its memory, with all columns that may be added."""
        return self.rows.nbytes + self.starts.nbytes + REMEMBERED_COLUMNS * _COLUMN_BYTES * len(self.rows)


class RememberedRows:
    """The rows of runs by run and clause; of the whole run."""

    def __init__(self, max_bytes: int = REMEMBERED_BYTES) -> None:
        """Remember rows up to that size."""
        self._rows: BoundedCache[tuple[tuple[int, ...], int], _Rows] = BoundedCache(max_bytes, lambda rows: rows.bytes)

    @property
    def bytes(self) -> int:
        """The memory of all rows."""
        return self._rows.size

    def hits(self, segment: Segment, query_input: RegisteredInput, selector: Selector, first: int, last: int) -> Hits:
        """The tuples from `first` to before `last` that satisfy an input's clause."""
        clause = query_input.clause_id
        is_whole = first == 0 and last == segment.rows and segment.matched_seq is not None
        # A factor that raises for a tuple does so at each invocation, and all rows are not selected at all.
        if clause is None or not is_whole or selector.derived or not selector.clause:
            return segment.hits(query_input, selector, first, last)
        key = segment.key, clause
        known = self._rows.find(key)
        if known is None:
            hits = segment.hits(query_input, selector, first, last)
            known = _Rows(hits.rows, hits.starts, {})
            self._rows.put(key, known)
        return Hits(segment, segment.run(), known.rows, known.starts, known.columns)


def remember_column(hits: Hits, name: str, column: pa.Array) -> None:
    """Keep a column of remembered rows with them, if it has plain numbers without NULLs."""
    columns = hits.columns
    if columns is None or len(columns) >= REMEMBERED_COLUMNS:
        return
    if pa.types.is_primitive(column.type) and column.type.bit_width <= 8 * _COLUMN_BYTES and not column.null_count:
        columns[name] = column
