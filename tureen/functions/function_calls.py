"""User functions in DuckDB: SQL that calls them finds them by the digest of their definition.

The functions that this process knows are those of the queries that it bound, and of the clauses that it evaluates.
DuckDB hands over up to 2,048 rows at a time, and a worker process calls the function.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tureen.errors import LimitExceeded, QueryFailed
from tureen.functions import function_workers
from tureen.functions.function_costs import costs
from tureen.functions.function_limits import call_seconds
from tureen.functions.function_worker import shown_call
from tureen.functions.function_workers import CallExpired, WorkerFailed
from tureen.functions.user_function import UserFunction, digests_in, sql_name
from tureen.schema import Kind, Type

MOST_ENDLESS = 1_000
"""The maximum number of calls that a process remembers as endless."""

ENDLESS_SECONDS = 600.0
"""The seconds after which a call that did not end is tried again."""

_functions: dict[str, UserFunction] = {}

_local = threading.local()
_NAMES = {Kind.INT: "INTEGER", Kind.STRING: "VARCHAR"}


def know(function: UserFunction) -> None:
    """Let SQL call a function in this process."""
    _functions[function.digest] = function


@lru_cache(maxsize=1024)
def know_text(text: str) -> UserFunction:
    """Let SQL call the function of a definition."""
    function = UserFunction.parse(text)
    know(function)
    return function


def functions_in(sql: str) -> list[UserFunction]:
    """The functions that SQL calls."""
    return [_functions[digest] for digest in digests_in(sql) if digest in _functions]


def definitions_in(sql: str) -> tuple[str, ...]:
    """The definitions of the functions that SQL calls."""
    return tuple(function.text for function in functions_in(sql))


@dataclass
class _Endless:
    """Calls that did not end: they fail at once when they are repeated."""

    _calls: dict[tuple[str, tuple[Any, ...]], float] = field(default_factory=dict)
    _functions: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, function: UserFunction, row: tuple[Any, ...]) -> None:
        with self._lock:
            if len(self._calls) >= MOST_ENDLESS:
                self._calls.clear()
                self._functions.clear()
            self._calls[function.digest, row] = time.monotonic()
            self._functions.add(function.digest)

    def find(self, function: UserFunction, arguments: pa.RecordBatch) -> tuple[Any, ...] | None:
        """The first row of a batch whose call is known not to end."""
        if function.digest not in self._functions:
            return None
        with self._lock:
            expired = time.monotonic() - ENDLESS_SECONDS
            self._calls = {call: since for call, since in self._calls.items() if since > expired}
            self._functions = {digest for digest, _ in self._calls}
            for row in _rows(arguments):
                if (function.digest, row) in self._calls:
                    return row
        return None


_endless = _Endless()


def _rows(arguments: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in arguments.columns), strict=True)


def prepare(connection: Any, sql: str, subject: str, deadline: float) -> None:
    """Create the functions that SQL calls in a DuckDB connection of this thread, for one evaluation."""
    _local.failure, _local.subject, _local.deadline = None, subject, deadline
    created: set[str] = connection_functions(connection)
    for digest in digests_in(sql):
        function = _functions.get(digest)
        if function is None or digest in created:
            continue
        types = [_sql_type(argument) for argument in function.arguments]
        for constant in (False, True):
            connection.create_function(
                sql_name(function, constant=constant)[1:-1],
                _callback(function),
                types,
                _sql_type(function.returns),
                type="arrow",
                null_handling="special",
                # Such functions are not evaluated while a query is planned, when there may be no row.
                side_effects=constant,
            )
        created.add(digest)


def connection_functions(connection: Any) -> set[str]:
    """The digests of the functions that this thread's connection has."""
    if getattr(_local, "connection", None) is not connection:
        _local.connection, _local.created = connection, set()
    created: set[str] = _local.created
    return created


def failure() -> QueryFailed | None:
    """Why a function stopped the last evaluation of this thread, if it did."""
    error: QueryFailed | None = getattr(_local, "failure", None)
    return error


def _callback(function: UserFunction) -> Callable[..., pa.Array]:
    """A Python function with as many parameters as DuckDB expects."""
    names = ", ".join(f"a{number}" for number in range(len(function.arguments)))
    namespace: dict[str, Any] = {"call": lambda *columns: _called(function, columns)}
    exec(f"def callback({names}):\n    return call({names})", namespace)
    callback: Callable[..., pa.Array] = namespace["callback"]
    return callback


def _called(function: UserFunction, columns: tuple[pa.ChunkedArray, ...]) -> pa.Array:
    try:
        return _call(function, columns, _local.deadline, _local.subject)
    except QueryFailed as error:
        _local.failure = error
        raise


def _call(function: UserFunction, columns: tuple[pa.ChunkedArray, ...], deadline: float, subject: str) -> pa.Array:
    arrays = [
        column.combine_chunks().cast(kind.arrow) for column, kind in zip(columns, function.arguments, strict=True)
    ]
    arguments = pa.record_batch(arrays, [f"a{number}" for number in range(len(arrays))])
    endless = _endless.find(function, arguments)
    if endless is not None:
        raise _expired(function, endless, call_seconds(), subject)
    try:
        called = function_workers.pool.call(function, arguments, deadline)
    except WorkerFailed as error:
        costs.add_failure(function)
        raise QueryFailed(f"{subject} raised on some tuple", detail=str(error)) from None
    except CallExpired as expired:
        costs.add_failure(function)
        if expired.row is None or expired.seconds is None:
            raise _expired(function, None, expired.seconds, subject) from None
        row = next(row for number, row in enumerate(_rows(arguments)) if number == expired.row)
        _endless.add(function, row)
        raise _expired(function, row, expired.seconds, subject) from None
    costs.add(function, arguments.num_rows, called.seconds)
    return _plain(called.results)


def _expired(function: UserFunction, row: tuple[Any, ...] | None, seconds: float | None, subject: str) -> LimitExceeded:
    limit = "within the time limit of the evaluation" if seconds is None else f"within {seconds:g} seconds"
    call = f"{function.name}({', '.join(kind.sql for kind in function.arguments)})"
    return LimitExceeded(
        f"{subject} calls {function.name}, which did not end {limit}",
        detail=f"the call was {shown_call(function.name, row)}" if row is not None else f"the calls were of {call}",
        hint="correct the function, or call it for fewer tuples",
    )


def _sql_type(kind: Type) -> str:
    return kind.sql if kind.kind is Kind.DECIMAL else _NAMES.get(kind.kind, kind.sql)


def _plain(results: pa.Array) -> pa.Array:
    """The results with DuckDB's type: its timestamps have no zone."""
    return results.cast(pa.timestamp("us")) if pa.types.is_timestamp(results.type) else results
