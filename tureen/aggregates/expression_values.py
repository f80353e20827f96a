"""The values of expressions over some tuples, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.evaluation.duck import arrow_column, run
from tureen.query import NOW, Expression

ROW = "_row"
"""The column that numbers rows in the order they come in."""


def evaluate(expressions: Sequence[Expression], rows: pa.Table) -> list[pa.Array]:
    """Each expression's values; bare columns are taken as they are, the rest DuckDB computes in one go."""
    computed = list(dict.fromkeys(one for one in expressions if one.column is None))
    found: dict[Expression, pa.Array] = {}
    if computed:
        items = ", ".join(f"({one.sql}) AS value{number}" for number, one in enumerate(computed))
        answer = run(f"SELECT {items} FROM rows", {"rows": numbered(rows)}, "an expression")
        for number, one in enumerate(computed):
            found[one] = arrow_column(answer.column(number), one.type.arrow)
    for one in expressions:
        if one.column is not None and one not in found:
            found[one] = rows.column(one.column).combine_chunks()
    return [found[one] for one in expressions]


def with_now(rows: pa.Table | pa.RecordBatch, now: int) -> pa.Table:
    """Rows with the moment of the invocation beside each."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    moments = pa.array(np.full(table.num_rows, now, np.int64)).cast(pa.timestamp("us", tz="UTC"))
    return table.append_column(NOW, moments)


def rows_where(condition: Expression, rows: pa.Table) -> npt.NDArray[np.int64]:
    """The numbers of the rows for which a condition is TRUE, in their order."""
    sql = f"SELECT {ROW} FROM rows WHERE {condition.sql} ORDER BY {ROW}"
    found: npt.NDArray[np.int64] = run(sql, {"rows": numbered(rows)}, "a condition").column(0).to_numpy()
    return found


def numbered(rows: pa.Table) -> pa.Table:
    """Rows with their numbers; a table of no columns would have no rows either, as DuckDB sees it."""
    return rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
