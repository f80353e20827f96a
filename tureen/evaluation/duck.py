"""DuckDB, for the parts that it does better: any expression over Arrow columns, in this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tureen.errors import QueryFailed
from tureen.evaluation.limits import LONGEST_TEXT, TEXT_MADE, connect, limited
from tureen.window import to_micros

_FIRST = to_micros(datetime.min.replace(tzinfo=UTC))
_LAST = to_micros(datetime.max.replace(tzinfo=UTC))
"""The instants that have a date here."""

VECTOR = 2_048
"""How many rows DuckDB evaluates at a time."""

TEXT_BYTES = 128 << 20
"""About the most bytes of texts that are made of the rows evaluated at a time."""

LONGEST_TEXT_BYTES = 4 * LONGEST_TEXT

_local = threading.local()


def _connection() -> Any:
    """This thread's DuckDB."""
    connection = getattr(_local, "connection", None)
    if connection is None:
        connection = connect()
        # Rewriting `a + 1 = 3` into `a = 2` would hide an overflow that must be raised.
        connection.execute("SET disabled_optimizers = 'expression_rewriter'")
        connection.execute("SET lock_configuration = true")
        _local.connection = connection
    return connection


def run(sql: str, tables: Mapping[str, pa.Table], what: str) -> pa.Table:
    """The answer of a SELECT over Arrow tables; any error of DuckDB's is a QueryFailed that says what raised."""
    connection = _connection()
    for name, table in tables.items():
        connection.register(name, _in_batches(sql, table))
    try:
        with limited(connection, what):
            return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After either, this DuckDB answers nothing any more; the next expression gets a new one.
            _local.connection = None
        # The rest of DuckDB's text is advice for those who speak to it directly.
        said = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise QueryFailed(f"{what} raised on some tuple", detail=said) from error
    finally:
        if _local.connection is connection:
            for name in tables:
                connection.unregister(name)


def _in_batches(sql: str, table: pa.Table) -> pa.Table:
    """The table in batches, of which DuckDB evaluates one at a time: the texts that it makes of one are bounded.

    It does not count them as memory that it uses.
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
    """A column of DuckDB's in the type it has here; DuckDB's plain timestamps are instants in UTC."""
    whole = column.combine_chunks()
    if pa.types.is_list(kind):
        values = arrow_column(pa.chunked_array([whole.values]), kind.value_type)
        return pa.ListArray.from_arrays(whole.offsets, values, type=kind)
    if pa.types.is_timestamp(kind):
        micros = whole.cast(pa.timestamp("us", whole.type.tz)).cast(pa.int64())
        ends = pc.min_max(micros).as_py()
        if ends["min"] is not None and not _FIRST <= ends["min"] <= ends["max"] <= _LAST:
            raise QueryFailed("an expression raised on some tuple", detail="a time is beyond the years 1 to 9999")
        whole = micros
    return whole.cast(kind)
