"""Expressions over Arrow columns, evaluated by DuckDB in this process."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

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

BOUND = 128
"""The number of bound statements that a connection keeps."""

_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_local = threading.local()


class _Input:
    """What a connection reads under a name: the table of the evaluation that is running."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Its columns, which DuckDB asks for whenever it binds a statement."""
        return self.table.schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Its rows."""
        return self.table.__arrow_c_stream__(requested_schema)


class _Evaluator:
    """A DuckDB connection of one thread, with what it need not do again for the same statement over other rows.

    For a few rows, registering a table and binding a statement take longer than evaluating it.
    """

    def __init__(self) -> None:
        self.connection = connect()
        # Rewriting `a + 1 = 3` into `a = 2` would hide an overflow that must be raised.
        self.connection.execute("SET disabled_optimizers = 'expression_rewriter'")
        self.connection.execute("SET lock_configuration = true")
        self._inputs: dict[str, _Input] = {}
        self._bound: LRUCache[tuple[str, str, pa.Schema], Any] = LRUCache(BOUND)

    def over_table(self, sql: str, name: str, table: pa.Table) -> pa.Table:
        """The result of a SELECT over one table."""
        source = self._inputs.get(name)
        if source is None:
            source = self._inputs[name] = _Input()
            source.table = table
            self.connection.register(name, source)
        source.table = table
        key = (sql, name, table.schema)
        try:
            relation = self._bound.get(key)
            if relation is None:
                relation = self._bound[key] = self.connection.sql(sql)
            return relation.to_arrow_table()
        finally:
            del source.table

    def over_tables(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The result of a SELECT over several tables, whose numbers of rows decide how they are joined."""
        for name, table in tables.items():
            if self._inputs.pop(name, None) is not None:
                self.connection.unregister(name)
                self._bound.clear()
            self.connection.register(name, table)
        try:
            return self.connection.sql(sql).to_arrow_table()
        finally:
            # After a fatal error, the connection does nothing any more.
            with suppress(duckdb.Error):
                for name in tables:
                    self.connection.unregister(name)


def _evaluator() -> _Evaluator:
    """This thread's evaluator."""
    evaluator: _Evaluator | None = getattr(_local, "evaluator", None)
    if evaluator is None:
        evaluator = _local.evaluator = _Evaluator()
    return evaluator


def run(sql: str, tables: Mapping[str, pa.Table], subject: str) -> pa.Table:
    """The result of a SELECT over Arrow tables; raises QueryFailed with the `subject` for any error of DuckDB."""
    evaluator = _evaluator()
    tables = {name: _in_batches(sql, table) for name, table in tables.items()}
    try:
        with limited(evaluator.connection, subject) as deadline:
            if "#" in sql:
                function_calls.prepare(evaluator.connection, sql, subject, deadline)
            if len(tables) == 1 and "#" not in sql:
                ((name, table),) = tables.items()
                return evaluator.over_table(sql, name, table)
            return evaluator.over_tables(sql, tables)
    except duckdb.Error as error:
        if "#" in sql and (stopped := function_calls.failure()) is not None:
            raise stopped from None
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After either, this connection is unusable; the next expression gets a new one.
            _local.evaluator = None
        # The kind of the error, and what follows the first sentence, are for DuckDB's direct users.
        message = _KIND.sub("", str(error).strip().partition("\n")[0].partition(". ")[0])
        hint = "exclude such tuples in WHERE, or use try_cast, try_divide or another try_ function"
        raise QueryFailed(f"{subject} raised on some tuple", detail=message, hint=hint) from error


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
