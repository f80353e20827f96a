"""Set operations on the answers of two blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tureen.aggregates.expression_values import ROW, numbered
from tureen.evaluation.duck import run
from tureen.query import SetOperator, block_column
from tureen.schema import FRACTIONAL, type_of_arrow

_SIDE = "_side"


def combine(operator: SetOperator, keep_duplicates: bool, left: pa.Table, right: pa.Table) -> pa.Table:
    """The rows of both, of either or of one side only; the first of equal rows determines their order.

    Both have the columns of a block (`block_column`), of the same types.
    """
    both = pa.concat_tables([left, right])
    if operator is SetOperator.UNION and keep_duplicates:
        return both
    sides = np.repeat([0, 1], [left.num_rows, right.num_rows])
    rows = numbered(both).append_column(_SIDE, pa.array(sides))
    keys = ", ".join(_key(number, field.type) for number, field in enumerate(both.schema))
    sql = (
        f"SELECT min({ROW}), count(*) FILTER ({_SIDE} = 0), count(*) FILTER ({_SIDE} = 1) "
        f"FROM rows GROUP BY {keys} ORDER BY min({ROW})"
    )
    first, of_left, of_right = (column.to_numpy() for column in run(sql, {"rows": rows}, "a set operation").columns)
    match operator:
        case SetOperator.UNION:
            copies = np.ones(len(first), np.int64)
        case SetOperator.INTERSECT:
            copies = np.minimum(of_left, of_right)
        case SetOperator.EXCEPT:
            copies = np.maximum(of_left - of_right, 0) if keep_duplicates else of_left * (of_right == 0)
    if not keep_duplicates:
        copies = np.minimum(copies, 1)
    return both.take(pa.array(np.repeat(first, copies)))


def _key(number: int, kind: pa.DataType) -> str:
    """A column as a key of groups; -0.0 becomes 0.0."""
    type_ = type_of_arrow(kind)
    name = block_column(number)
    return f"{name} + 0" if type_ is not None and type_.kind in FRACTIONAL else name
