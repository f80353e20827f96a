"""The rows of VALUES as a table."""

from __future__ import annotations

import pyarrow as pa

from tureen.evaluation.duck import arrow_column, run
from tureen.query import ConstantRows, block_column


def constant_table(constants: ConstantRows) -> pa.Table:
    """The rows, with the columns of `block_column`."""
    rows = ", ".join(f"({', '.join(value.sql for value in row)})" for row in constants.rows)
    values = run(f"SELECT * FROM (VALUES {rows})", {}, "VALUES")
    return pa.table(
        {
            block_column(number): arrow_column(column, output.value.type.arrow)
            for number, (column, output) in enumerate(zip(values.columns, constants.outputs, strict=True))
        }
    )
