"""Matches: the rows that satisfy a query's conditions within its windows.

They are the input of gathering, grouping and finishing, whether they are tuples of one stream or joined tuples of
several.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Matches(Protocol):
    """Rows that satisfy a query's conditions within its windows."""

    def __len__(self) -> int:
        """The number of rows."""

    def table(self, fields: pa.Schema) -> pa.Table:
        """Columns of the rows, in order of time and then of tuple id."""
