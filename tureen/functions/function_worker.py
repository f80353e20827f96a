"""The process that calls user functions: it reads calls from its input and writes their results to its output.

A message is a header in JSON and perhaps Arrow columns, each preceded by its length. The process ends with its input,
so it never outlives the process that started it.
"""

from __future__ import annotations

import importlib
import json
import math
import mmap
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from tureen.functions.user_function import UserFunction
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

RowStarted = Callable[[int], None]
"""Notes the row whose call begins."""

LENGTHS = struct.Struct("<QQ")
LONGEST_RESULT = 1 << 20
"""The maximum length of a text that a function returns for a row."""

MOST_BYTES = 128 << 20
"""The maximum size of the results of the calls that are made at a time, so that they fit into the caller's memory."""

LONGEST_SHOWN = 80
"""The maximum length of an argument in a message."""

WHOLE_BATCH, LOADING = -1, -2
"""The numbers of the current row while a vectorized function is called, and before and after calls."""

LARGEST_FLOAT, LARGEST_DOUBLE = float.fromhex("0x1.fffffep+127"), sys.float_info.max
"""The greatest finite numbers; a larger one would silently become infinite."""

_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}


class CallFailed(Exception):
    """A call that raised, or whose result does not fit; the message is for the user."""


def read_message(stream: BinaryIO) -> tuple[dict[str, Any], pa.RecordBatch | None] | None:
    """The next message; None at the end of the stream."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    header_size, body_size = LENGTHS.unpack(lengths)
    header, body = stream.read(header_size), stream.read(body_size)
    if len(header) + len(body) < header_size + body_size:
        return None
    batch = pa.ipc.open_stream(body).read_next_batch() if body else None
    return json.loads(header), batch


def message(header: dict[str, Any], batch: pa.RecordBatch | None = None) -> bytes:
    """The bytes of a message."""
    text, body = json.dumps(header).encode(), b""
    if batch is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        body = sink.getvalue().to_pybytes()
    return LENGTHS.pack(len(text), len(body)) + text + body


def load(function: UserFunction) -> Callable[..., Any]:
    """The Python function of a definition; raises CallFailed if it cannot be defined or imported."""
    try:
        if function.path is not None:
            module, _, names = function.path.partition(":")
            target: Any = importlib.import_module(module)
            for name in names.split("."):
                target = getattr(target, name)
        else:
            assert function.source is not None
            target = defined(function.source)
    except BaseException as error:
        raise CallFailed(f"function {function.name} cannot be loaded: {_text(error)}") from None
    if not callable(target):
        raise CallFailed(f"function {function.name} cannot be loaded: '{function.path}' is not callable")
    callback: Callable[..., Any] = target
    return callback


def defined(source: str) -> Callable[..., Any]:
    """The function that a `def` defines, in a module of its own."""
    namespace: dict[str, Any] = {"__name__": "tureen_function", "__builtins__": __builtins__}
    code = compile("from __future__ import annotations\n" + source, "<function>", "exec", dont_inherit=True)
    exec(code, namespace)
    callback: Callable[..., Any] = [value for name, value in namespace.items() if name not in _NAMESPACE][-1]
    return callback


_NAMESPACE = frozenset({"__name__", "__builtins__", "annotations"})


def call(
    function: UserFunction, callback: Callable[..., Any], columns: Sequence[pa.Array], row_started: RowStarted
) -> tuple[pa.Array, float]:
    """The results of a function for columns of arguments, and the seconds of its calls.

    Raises CallFailed with the arguments of the row.
    """
    if function.vectorized:
        return _call_vectorized(function, callback, columns, row_started)
    results = []
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    began = time.perf_counter()
    for number, row in enumerate(rows):
        row_started(number)
        try:
            value = callback(*row)
        except BaseException as error:
            raise CallFailed(f"{shown_call(function.name, row)} raised {_text(error)}") from None
        try:
            results.append(converted(value, function.returns))
        except ValueError as error:
            raise CallFailed(f"{shown_call(function.name, row)} returned {error}") from None
    seconds = time.perf_counter() - began
    row_started(LOADING)
    if function.returns.kind is Kind.STRING:
        _check_size(function, sum(len(text) for text in results if text is not None), len(results))
    return pa.array(results, function.returns.arrow), seconds


def _call_vectorized(
    function: UserFunction, callback: Callable[..., Any], columns: Sequence[pa.Array], row_started: RowStarted
) -> tuple[pa.Array, float]:
    row_started(WHOLE_BATCH)
    shown = shown_call(function.name, [column[0].as_py() for column in columns if len(column)])
    rows, began = len(columns[0]), time.perf_counter()
    try:
        result = callback(*columns)
    except BaseException as error:
        raise CallFailed(f"{shown} and {rows - 1:,} more rows raised {_text(error)}") from None
    seconds = time.perf_counter() - began
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array):
        raise CallFailed(f"{shown} returned {type(result).__name__}, not a pyarrow.Array")
    if len(result) != rows:
        raise CallFailed(f"{shown} returned {len(result):,} values for {rows:,} rows")
    _check_size(function, result.nbytes, rows)
    try:
        return converted_array(result, function.returns), seconds
    except (ValueError, pa.ArrowException) as error:
        raise CallFailed(
            f"{shown} returned an array of {result.type}, not {function.returns.sql}: {_text(error)}"
        ) from None


def converted_array(result: pa.Array, kind: Type) -> pa.Array:
    """Results as an array of a type; raises ValueError or ArrowException if one does not fit.

    As for the values of `converted`, a text is no number, and a finite number does not become infinite.

    >>> converted_array(pa.array([1, None]), Type.parse("DOUBLE")).to_pylist()
    [1.0, None]
    """
    if pa.types.is_dictionary(result.type):
        result = result.dictionary_decode()
    if not pa.types.is_null(result.type) and not any(accepts(result.type) for accepts in _ACCEPTED[kind.kind]):
        raise ValueError("the types differ")
    array = result.cast(kind.arrow)
    if kind.kind is Kind.FLOAT and pc.any(pc.and_(pc.is_inf(array), pc.invert(pc.is_inf(result)))).as_py():
        raise ValueError("a number does not fit in FLOAT")
    return array


def _check_size(function: UserFunction, size: int, rows: int) -> None:
    if size > MOST_BYTES:
        limit = f"more than {MOST_BYTES >> 20:,} MiB"
        raise CallFailed(f"function {function.name} returned {size >> 20:,} MiB for {rows:,} rows, {limit}")


def converted(value: Any, kind: Type) -> Any:
    """A result as a value of a type; raises ValueError if it does not fit.

    >>> converted(3, Type.parse("DOUBLE"))
    3.0
    """
    if value is None:
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    accepted, convert = _CONVERSIONS[kind.kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind.kind is not Kind.BOOLEAN):
        raise ValueError(f"{_shown(value)} of type {type(value).__name__}, which is not {kind.sql}")
    return convert(value, kind)


def _integer(value: int, kind: Type) -> int:
    half = 1 << (_BITS[kind.kind] - 1)
    if not -half <= value < half:
        raise ValueError(f"{value}, which does not fit in {kind.sql}")
    return value


def _decimal(value: Decimal | int, kind: Type) -> Decimal:
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value}, which is not {kind.sql}")
    try:
        # Not rounded: the default context has 28 digits, and the function may have changed it.
        return Context(prec=kind.precision, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact]).quantize(
            number, Decimal((0, (1,), -kind.scale))
        )
    except ArithmeticError:
        raise ValueError(f"{str(number)[:LONGEST_SHOWN]}, which does not fit in {kind.sql}") from None


def _string(value: str, kind: Type) -> str:
    if len(value) > LONGEST_RESULT:
        raise ValueError(f"a text of {len(value):,} characters, more than {LONGEST_RESULT:,}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{ascii(value)[:LONGEST_SHOWN]}, which is not valid Unicode, as {kind.sql}") from None
    return str(value)


def _date(value: date, kind: Type) -> date:
    if isinstance(value, datetime):
        raise ValueError(f"{value} of type datetime, which is not {kind.sql}")
    return value


def _timestamp(value: datetime, kind: Type) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{value}, which does not fit in {kind.sql}") from None


def _float(value: float, kind: Type) -> float:
    limit = LARGEST_FLOAT if kind.kind is Kind.FLOAT else LARGEST_DOUBLE
    if limit < abs(value) < math.inf:
        raise ValueError(f"{_shown(value)}, which does not fit in {kind.sql}")
    return float(value)


_CONVERSIONS: dict[Kind, tuple[Any, Callable[[Any, Type], Any]]] = {
    Kind.BOOLEAN: (bool, lambda value, _: value),
    **dict.fromkeys(INTEGRAL, (int, _integer)),
    **dict.fromkeys(FRACTIONAL, (int | float, _float)),
    Kind.DECIMAL: (Decimal | int, _decimal),
    Kind.STRING: (str, _string),
    Kind.DATE: (date, _date),
    Kind.TIMESTAMP: (datetime, _timestamp),
}


_ACCEPTED: dict[Kind, tuple[Callable[[pa.DataType], bool], ...]] = {
    Kind.BOOLEAN: (pa.types.is_boolean,),
    **dict.fromkeys(INTEGRAL, (pa.types.is_integer,)),
    **dict.fromkeys(FRACTIONAL, (pa.types.is_integer, pa.types.is_floating)),
    Kind.DECIMAL: (pa.types.is_integer, pa.types.is_decimal),
    Kind.STRING: (pa.types.is_string, pa.types.is_large_string),
    Kind.DATE: (pa.types.is_date,),
    Kind.TIMESTAMP: (pa.types.is_timestamp,),
}
"""The Arrow types that a vectorized function may return, by the type of its results."""


def shown_call(name: str, row: Sequence[Any]) -> str:
    """A call as text, with shortened arguments."""
    return f"{name}({', '.join(map(_shown, row))})"


def _shown(value: Any) -> str:
    try:
        text = repr(value[:LONGEST_SHOWN] if isinstance(value, str | bytes) else value)
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _text(error: BaseException) -> str:
    """An exception as text: its type and the first line of its message."""
    try:
        lines = str(error).strip().splitlines() or [""]
    except Exception:
        lines = [""]
    message_text = lines[0][: 4 * LONGEST_SHOWN]
    return f"{type(error).__name__}: {message_text}" if message_text else type(error).__name__


def serve(calls: BinaryIO, results: BinaryIO, progress: mmap.mmap) -> None:
    """Answer calls until the input ends."""
    callbacks: dict[str, tuple[UserFunction, Callable[..., Any]]] = {}
    row = memoryview(progress).cast("q")

    def row_started(number: int) -> None:
        row[0] = number

    while (request := read_message(calls)) is not None:
        header, batch = request
        row_started(LOADING)
        try:
            if "definition" in header:
                definition = UserFunction.parse(header["definition"])
                callbacks[definition.digest] = definition, load(definition)
            reply, result = {"ok": True, "seconds": 0.0}, None
            if batch is not None:
                function, callback = callbacks[header["digest"]]
                array, seconds = call(function, callback, batch.columns, row_started)
                reply, result = {"ok": True, "seconds": seconds}, pa.record_batch([array], ["result"])
            results.write(message(reply, result))
        except CallFailed as failure:
            results.write(message({"ok": False, "error": str(failure)}))
        except BaseException as error:
            results.write(message({"ok": False, "error": f"function {header['name']} raised {_text(error)}"}))
        results.flush()


def _detach(*files: int) -> None:
    """Let a forked child neither read calls nor write results: for it, both ends are the null device."""
    null = os.open(os.devnull, os.O_RDWR)
    for file in files:
        os.dup2(null, file)
    os.close(null)


def main() -> None:
    """Serve the process that started this one."""
    progress_file, memory = int(sys.argv[1]), int(sys.argv[2])
    # An interrupt of the terminal goes to all processes; this one ends with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What functions print goes to the log, and they have no input.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # A child that a function forks must not answer for this process.
    os.register_at_fork(after_in_child=lambda: _detach(calls.fileno(), results.fileno()))
    serve(calls, results, mmap.mmap(progress_file, 8))


if __name__ == "__main__":
    main()
