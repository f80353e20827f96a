"""The values of expressions over tuples, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.evaluation.duck import arrow_column, run
from tureen.query import NOW, Expression

ROW = "_row"
"""The column of row numbers, in input order."""


def evaluate(expressions: Sequence[Expression], rows: pa.Table) -> list[pa.Array]:
    """Each expression's values; bare columns are used as they are, DuckDB computes all others in one query."""
    computed = list(dict.fromkeys(expression for expression in expressions if expression.column is None))
    values: dict[Expression, pa.Array] = {}
    if computed:
        items = ", ".join(f"({expression.sql}) AS value{number}" for number, expression in enumerate(computed))
        answer = run(f"SELECT {items} FROM rows", {"rows": numbered(rows)}, "an expression")
        for number, expression in enumerate(computed):
            values[expression] = arrow_column(answer.column(number), expression.type.arrow)
    for expression in expressions:
        if expression.column is not None and expression not in values:
            values[expression] = rows.column(expression.column).combine_chunks()
    return [values[expression] for expression in expressions]


def with_now(rows: pa.Table | pa.RecordBatch, now: int) -> pa.Table:
    """Rows with the time of the invocation as a further column."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    moments = pa.array(np.full(table.num_rows, now, np.int64)).cast(pa.timestamp("us", tz="UTC"))
    return table.append_column(NOW, moments)


def rows_where(condition: Expression, rows: pa.Table) -> npt.NDArray[np.int64]:
    """The numbers of the rows for which a condition is TRUE, ascending."""
    sql = f"SELECT {ROW} FROM rows WHERE {condition.sql} ORDER BY {ROW}"
    numbers: npt.NDArray[np.int64] = run(sql, {"rows": numbered(rows)}, "a condition").column(0).to_numpy()
    return numbers


def numbered(rows: pa.Table) -> pa.Table:
    """Rows with their numbers. For DuckDB, a table without columns would have no rows."""
    return rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
