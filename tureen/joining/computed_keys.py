"""Computed keys: the sides of an equality of expressions, evaluated for the rows of each side of a join.

Rows that satisfy the equality have equal keys. So only pairs with equal keys are candidates, for which the condition
itself is evaluated, instead of all combinations.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tureen.aggregates.expression_values import numbered
from tureen.errors import LimitExceeded, QueryFailed
from tureen.evaluation.duck import run
from tureen.join import Field, JoinCompare, JoinFactor, JoinKey, JoinOpaque, field_name
from tureen.joining.join_keys import keys_of
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.partners import Compared
from tureen.joining.row_conditions import is_costly

Values = Callable[[Field, JoinedRows], pa.Array]
"""A column of joined rows."""


def has_computed_keys(factor: JoinFactor) -> bool:
    """Whether a factor is an equality of expressions; calls of user functions are left to the pairs that need them."""
    return isinstance(factor, JoinOpaque) and factor.keys is not None and not is_costly(factor)


def computed_keys(factor: JoinFactor, left: JoinedRows, right: JoinedRows, values: Values) -> Compared | None:
    """The keys of both sides; None if the sides are others, cannot be compared by keys, or raise for some row.

    An expression that raises may do so for a row whose pairs fail other conditions before.
    """
    assert isinstance(factor, JoinOpaque)
    assert factor.keys is not None
    first, second = factor.keys
    if _reads(second, left) and _reads(first, right):
        first, second = second, first
    elif not _reads(first, left) or not _reads(second, right):
        return None
    try:
        columns = _evaluated(first, left, values), _evaluated(second, right, values)
    except LimitExceeded:
        raise
    except QueryFailed:
        return None
    domain = _domain(*(column.type for column in columns))
    if domain is None:
        return None
    return Compared("=", *keys_of(JoinCompare(first.fields[0], "=", second.fields[0], domain=domain), *columns))


def _reads(key: JoinKey, rows: JoinedRows) -> bool:
    return all(field.input in rows.rows for field in key.fields)


def _evaluated(key: JoinKey, rows: JoinedRows, values: Values) -> pa.Array:
    """The values of a side; of texts, which may take any memory, their hashes."""
    table = pa.table({field_name(column): values(column, rows) for column in dict.fromkeys(key.fields)})
    sql = f"SELECT ({key.sql}) AS value FROM rows"
    if key.is_text:
        sql = f"SELECT CASE WHEN value IS NOT NULL THEN (hash(value) >> 1)::BIGINT END FROM ({sql})"
    return run(sql, {"rows": numbered(table)}, "a condition").column(0).combine_chunks()


def _domain(left: pa.DataType, right: pa.DataType) -> str | None:
    """The domain in which values that DuckDB compares as equal have equal keys."""
    if pa.types.is_signed_integer(left) and pa.types.is_signed_integer(right):
        return "int"
    if left != right:
        return None
    if pa.types.is_boolean(left) or pa.types.is_date32(left) or pa.types.is_timestamp(left):
        return "int"
    if pa.types.is_floating(left):
        return "double"
    return "decimal" if pa.types.is_decimal128(left) else None
