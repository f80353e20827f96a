"""Window functions of an answer, computed in DuckDB from its rows or groups.

Peers, rows that ORDER BY does not distinguish, keep the order of the input. If a frame counts rows, the row number is
the last item of the window's ORDER BY. If a frame consists of peers it is not; then functions that return the value of
one row order by it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from tureen.aggregates.aggregate_sql import picked_sql, plain_sql, result_column, sql_columns
from tureen.aggregates.expression_values import ROW, evaluate, numbered
from tureen.aggregates.finals import EXACT
from tureen.evaluation.duck import arrow_column, run
from tureen.query import Expression, Frame, Order, Over, over_name
from tureen.schema import FRACTIONAL, Kind

_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


def with_over_columns(overs: Sequence[Over], rows: pa.Table) -> pa.Table:
    """The rows with a column for each window function."""
    # Arguments are evaluated first, because DuckDB must not sort by an expression that may raise an error.
    values = list(dict.fromkeys(value for over in overs for value in over.over_rows))
    names = {value: f"value{number}" for number, value in enumerate(values)}
    table = pa.table(dict(zip(names.values(), evaluate(values, rows), strict=True))) if values else rows
    parts = [part for number, over in enumerate(overs) for part in _parts(number, _over_columns(over, names))]
    result = run(f"SELECT {', '.join(parts)} FROM rows ORDER BY {ROW}", {"rows": numbered(table)}, "a window function")
    for number, over in enumerate(overs):
        rows = rows.append_column(over_name(number), _column(number, over, result))
    return rows


def _over_columns(over: Over, names: Mapping[Expression, str]) -> Over:
    """A window function over the columns that contain its evaluated arguments."""

    def column(value: Expression) -> Expression:
        return Expression(names[value], value.type, (names[value],), names[value])

    return replace(
        over,
        call=replace(over.call, arguments=tuple(map(column, over.call.arguments))),
        partition=tuple(map(column, over.partition)),
        order=tuple(replace(item, value=column(item.value)) for item in over.order),
    )


def _parts(number: int, over: Over) -> list[str]:
    """The columns that DuckDB computes for one function."""
    window = f"OVER ({_window(over)})"
    if over.call.function in _RANKINGS:
        return [f"{_RANKINGS[over.call.function](over, window)} AS value{number}"]
    return sql_columns(number, over.call, window, _peers(over))


def _column(number: int, over: Over, result: pa.Table) -> pa.Array:
    if over.call.function in _RANKINGS:
        return arrow_column(result.column(f"value{number}"), over.call.type.arrow)
    return result_column(number, over.call, result)


def _window(over: Over) -> str:
    """The SQL in the parentheses of OVER."""
    frame = over.frame
    by_peers = over.call.function in _PEERS if frame is None else not frame.rows
    with_offset = frame is not None and not frame.rows and bool({frame.start, frame.end} - {None, 0})
    order = [_ordered(_distance_key(item.value) if with_offset else plain_sql(item.value), item) for item in over.order]
    if not by_peers:
        order.append(ROW)
    words = [f"PARTITION BY {', '.join(map(plain_sql, over.partition))}"] if over.partition else []
    words += [f"ORDER BY {', '.join(order)}"] if order else []
    if frame is not None:
        start = "UNBOUNDED PRECEDING" if frame.start is None else _bound(frame, frame.start, over.order)
        end = "UNBOUNDED FOLLOWING" if frame.end is None else _bound(frame, frame.end, over.order)
        words.append(f"{'ROWS' if frame.rows else 'RANGE'} BETWEEN {start} AND {end}")
    return " ".join(words)


def _bound(frame: Frame, offset: int | float | str, order: Sequence[Order]) -> str:
    assert not isinstance(offset, str), "rows are ordered by numbers or times"
    if offset == 0:
        return "CURRENT ROW"
    side = "PRECEDING" if offset < 0 else "FOLLOWING"
    if frame.rows:
        return f"{abs(offset)} {side}"
    kind = order[0].value.type
    if kind.kind in FRACTIONAL:
        return f"CAST('{abs(offset)!r}' AS {kind.sql}) {side}"
    if kind.kind is Kind.DECIMAL:
        return f"CAST('{Decimal(abs(offset)).scaleb(-kind.scale, EXACT):f}' AS {_WIDE.format(kind.scale)}) {side}"
    return f"CAST({abs(offset)} AS HUGEINT) {side}"


_WIDE = "DECIMAL(38,{})"


def _distance_key(value: Expression) -> str:
    """A value as a number to which an offset can be added without overflow."""
    match value.type.kind:
        case Kind.FLOAT | Kind.DOUBLE:
            return plain_sql(value)
        case Kind.DECIMAL:
            return f"CAST({value.sql} AS {_WIDE.format(value.type.scale)})"
        case Kind.DATE:
            return f"CAST(({value.sql}) - DATE '1970-01-01' AS HUGEINT)"
        case Kind.TIMESTAMP:
            return f"CAST(epoch_us({value.sql}) AS HUGEINT)"
    return f"CAST({value.sql} AS HUGEINT)"


def _ordered(value: str, order: Order) -> str:
    return f"{value} {'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


_Part = Callable[[Over, str], str]


def _bare(name: str) -> _Part:
    return lambda _, window: f"{name}() {window}"


def _ntile(over: Over, window: str) -> str:
    return f"ntile({over.call.parameters[0]}) {window}"


def _moved(name: str, present: bool = False) -> _Part:
    """LAG and LEAD; the default, if there is one, is a value of the current row."""

    def sql(over: Over, window: str) -> str:
        arguments = [picked_sql(argument) for argument in over.call.arguments]
        arguments.insert(1, str(over.call.parameters[0]))
        return f"{name}({', '.join(arguments)}{' IGNORE NULLS' if present else ''}) {window}"

    return sql


def _nth(present: bool = False) -> _Part:
    """The value of one row of the frame."""

    def sql(over: Over, window: str) -> str:
        arguments = ", ".join([picked_sql(over.call.arguments[0]), *map(str, over.call.parameters)])
        return f"nth_value({arguments}{_peers(over)}{' IGNORE NULLS' if present else ''}) {window}"

    return sql


def _peers(over: Over) -> str:
    """The order of the rows of a frame in a function that returns the value of one; row numbers order peers."""
    if over.frame is None or over.frame.rows:
        return ""
    return f" ORDER BY {', '.join([*(_ordered(plain_sql(item.value), item) for item in over.order), ROW])}"


_RANKINGS: dict[str, _Part] = {
    **{name: _bare(name) for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")},
    "ntile": _ntile,
    "lag": _moved("lag"),
    "lead": _moved("lead"),
    "lag_present": _moved("lag", present=True),
    "lead_present": _moved("lead", present=True),
    "nth_value": _nth(),
    "nth_value_present": _nth(present=True),
}
"""The window functions that are not aggregates."""
