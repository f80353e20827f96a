"""Expressions over Arrow columns, evaluated by DuckDB in this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tureen.deferred_import import DeferredModule
from tureen.errors import QueryFailed
from tureen.evaluation.limits import LONGEST_TEXT, TEXT_MADE, connect, limited
from tureen.functions import function_calls
from tureen.window import to_micros

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = DeferredModule("duckdb")

_FIRST = to_micros(datetime.min.replace(tzinfo=UTC))
_LAST = to_micros(datetime.max.replace(tzinfo=UTC))
"""The supported range of timestamps: years 1 to 9999."""

VECTOR = 2_048
"""The number of rows that DuckDB evaluates at a time."""

TEXT_BYTES = 128 << 20
"""The approximate limit for the bytes of texts created from the rows that are evaluated at a time."""

LONGEST_TEXT_BYTES = 4 * LONGEST_TEXT

_local = threading.local()


def _connection() -> Any:
    """This thread's DuckDB connection."""
    connection = getattr(_local, "connection", None)
    if connection is None:
        connection = connect()
        # Rewriting `a + 1 = 3` into `a = 2` would hide an overflow that must be raised.
        connection.execute("SET disabled_optimizers = 'expression_rewriter'")
        connection.execute("SET lock_configuration = true")
        _local.connection = connection
    return connection


def run(sql: str, tables: Mapping[str, pa.Table], subject: str) -> pa.Table:
    """The result of a SELECT over Arrow tables; raises QueryFailed with the `subject` for any error of DuckDB."""
    connection = _connection()
    for name, table in tables.items():
        connection.register(name, _in_batches(sql, table))
    try:
        with limited(connection, subject) as deadline:
            if "#" in sql:
                function_calls.prepare(connection, sql, subject, deadline)
            return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        if "#" in sql and (stopped := function_calls.failure()) is not None:
            raise stopped from None
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After either, this connection is unusable; the next expression gets a new one.
            _local.connection = None
        # The rest of DuckDB's message is advice for its direct users.
        message = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise QueryFailed(f"{subject} raised on some tuple", detail=message) from error
    finally:
        if _local.connection is connection:
            for name in tables:
                connection.unregister(name)


def _in_batches(sql: str, table: pa.Table) -> pa.Table:
    """The table in batches, which DuckDB evaluates one at a time, to bound the texts that it creates.

    DuckDB does not count these in its memory limit.
    """
    per_row = sql.count(TEXT_MADE) * LONGEST_TEXT_BYTES
    if "||" in sql or "concat_ws(" in sql:
        per_row += (sql.count("||") + sql.count(",")) * sum(map(_longest, table.columns))
    rows = TEXT_BYTES // max(per_row, 1)
    if rows >= min(VECTOR, table.num_rows):
        return table
    return pa.Table.from_batches(table.to_batches(max_chunksize=max(rows, 1)), table.schema)


def _longest(column: pa.ChunkedArray) -> int:
    return pc.max(pc.binary_length(column)).as_py() or 0 if pa.types.is_string(column.type) else 0


def arrow_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A DuckDB column, cast to an Arrow type; DuckDB's timestamps without zone are in UTC."""
    array = column.combine_chunks()
    if pa.types.is_list(kind):
        values = arrow_column(pa.chunked_array([array.values]), kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind)
    if pa.types.is_timestamp(kind):
        micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
        ends = pc.min_max(micros).as_py()
        if ends["min"] is not None and not _FIRST <= ends["min"] <= ends["max"] <= _LAST:
            raise QueryFailed("an expression raised on some tuple", detail="a time is beyond the years 1 to 9999")
        array = micros
    return array.cast(kind)
