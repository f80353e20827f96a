"""Matches: the rows that satisfy a query's conditions within its windows.

They are the input of gathering, grouping and finishing, whether they are tuples of one stream
(`tureen.results.rows.gather.StreamMatches`) or joined tuples of several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.aggregates.expression_values import rows_where, with_now
from tureen.query import Expression

Numbers = npt.NDArray[np.int64]


class Matches(Protocol):
    """Rows that satisfy a query's conditions within its windows."""

    def __len__(self) -> int:
        """The number of rows."""

    def table(self, fields: pa.Schema) -> pa.Table:
        """Columns of the rows, in order of time and then of tuple id."""


StepsOfRows = Callable[[pa.Table], tuple[Numbers, Numbers]]
"""For each pair of a row and a step that contains it: the indexes of the rows, and the numbers of the steps."""


def rows_in_steps(
    matches: Matches, fields: pa.Schema, now: int | None, at_now: Expression | None, steps_of: StepsOfRows | None
) -> tuple[pa.Table, Numbers]:
    """Some columns of the matches, with NOW as a column where it is used, and the step of each row.

    With steps, every row is repeated for each step that it belongs to, step by step. With `at_now`, only the rows that
    satisfy this condition remain.
    """
    rows = matches.table(fields)
    rows = rows if now is None else with_now(rows, now)
    steps = np.zeros(rows.num_rows, np.int64)
    if steps_of is None and at_now is None:
        return rows, steps
    source = np.arange(rows.num_rows)
    if steps_of is not None:
        source, steps = steps_of(rows)
    if at_now is not None:
        holds = np.zeros(rows.num_rows, np.bool_)
        holds[rows_where(at_now, rows)] = True
        source, steps = source[holds[source]], steps[holds[source]]
    order = np.argsort(steps, kind="stable")
    return rows.take(pa.array(source[order])), steps[order]
