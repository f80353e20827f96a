"""The values of expressions over some tuples, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tureen.matching.duck import arrow_column, run
from tureen.query import Expression

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


def numbered(rows: pa.Table) -> pa.Table:
    """Rows with their numbers; a table of no columns would have no rows either, as DuckDB sees it."""
    return rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
