"""Bulk statements: one SQL statement over many rows.

SQLite releases the interpreter's lock at every step, and reacquiring it among busy threads is slow. A statement over a
hundred rows is one step; a hundred statements are a hundred. Registering 128 queries takes 3.7 ms instead of 6.6 ms
with statements for each query (docs/decisions/0024). Without bulk statements (`tureen/fast_paths.py`), the same
statement is executed for one row at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tureen.fast_paths import FastPath, is_enabled
from tureen.pot.transaction import ResultRows, Transaction

BATCH_ROWS = 128
"""Rows of one statement; more rows take several statements."""


class BulkStatement:
    """A statement whose text has {rows} where the rows of values go."""

    def __init__(self, text: str, width: int) -> None:
        """Take rows of `width` values each."""
        self._text = text
        self._row = f"({','.join('?' * width)})"

    def run(self, tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute it for all rows."""
        for _ in self._results(tx, rows):
            pass

    def read(self, tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result of a statement that returns one JSON array: fetching row by row would be a step each."""
        return [item for result in self._results(tx, rows) for item in json.loads(result.scalar())]

    def _results(self, tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> Iterator[ResultRows]:
        """Execute it in batches, and return the rows of each."""
        size = BATCH_ROWS if is_enabled(FastPath.BULK_STATEMENTS) else 1
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            text = self._text.format(rows=",".join([self._row] * len(batch)))
            yield tx.execute_text(text, [value for row in batch for value in row])
