"""Opaque factors: any boolean expression, evaluated by DuckDB over a block's Arrow columns."""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import pyarrow as pa

from tureen.errors import QueryFailed

_local = threading.local()


def _connection() -> Any:
    """This thread's DuckDB, in memory, with one thread and no way out of the process."""
    connection = getattr(_local, "connection", None)
    if connection is None:
        connection = duckdb.connect(":memory:", config={"threads": 1})
        connection.execute("SET TimeZone = 'UTC'")
        # Rewriting `a + 1 = 3` into `a = 2` would hide an overflow that must be raised.
        connection.execute("SET disabled_optimizers = 'expression_rewriter'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        _local.connection = connection
    return connection


def evaluate(sql: str, columns: pa.RecordBatch) -> pa.BooleanArray:
    """The expression's value for each row (true, false or NULL); any error of DuckDB's is a QueryFailed."""
    connection = _connection()
    connection.register("block", pa.Table.from_batches([columns]))
    try:
        answer = connection.sql(f"SELECT ({sql}) AS holds FROM block").to_arrow_table()
    except duckdb.Error as error:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After either, this DuckDB answers nothing any more; the next expression gets a new one.
            _local.connection = None
        # The rest of DuckDB's text is advice for those who speak to it directly.
        said = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise QueryFailed("the condition raised on some tuple", detail=said) from error
    finally:
        if _local.connection is connection:
            connection.unregister("block")
    return answer.column(0).combine_chunks().cast(pa.bool_())
