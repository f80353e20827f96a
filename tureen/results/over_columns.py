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

from tureen.aggregates.expression_values import ROW, evaluate, numbered
from tureen.aggregates.finals import EXACT, averages
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
    call, window = over.call, f"OVER ({_window(over)})"
    if _is_decimal_average(over):
        value = f"({call.arguments[0].sql})"
        return [f"sum({value}) {window} AS sum{number}", f"count({value}) {window} AS count{number}"]
    return [f"{_SQL[call.function](over, window)} AS over{number}"]


def _column(number: int, over: Over, result: pa.Table) -> pa.Array:
    if _is_decimal_average(over):
        argument = over.call.arguments[0].type
        sums = result.column(f"sum{number}").to_pylist()
        totals = [0 if total is None else int(total.scaleb(argument.scale, EXACT)) for total in sums]
        return averages(totals, result.column(f"count{number}").to_pylist(), argument, over.call.type)
    return arrow_column(result.column(f"over{number}"), over.call.type.arrow)


def _is_decimal_average(over: Over) -> bool:
    return over.call.function == "avg" and over.call.type.kind is Kind.DECIMAL


def _window(over: Over) -> str:
    """The SQL in the parentheses of OVER."""
    frame = over.frame
    by_peers = over.call.function in _PEERS if frame is None else not frame.rows
    with_offset = frame is not None and not frame.rows and bool({frame.start, frame.end} - {None, 0})
    order = [_ordered(_distance_key(item.value) if with_offset else _plain(item.value), item) for item in over.order]
    if not by_peers:
        order.append(ROW)
    words = [f"PARTITION BY {', '.join(map(_plain, over.partition))}"] if over.partition else []
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
            return _plain(value)
        case Kind.DECIMAL:
            return f"CAST({value.sql} AS {_WIDE.format(value.type.scale)})"
        case Kind.DATE:
            return f"CAST(({value.sql}) - DATE '1970-01-01' AS HUGEINT)"
        case Kind.TIMESTAMP:
            return f"CAST(epoch_us({value.sql}) AS HUGEINT)"
    return f"CAST({value.sql} AS HUGEINT)"


def _plain(value: Expression) -> str:
    """A value by which rows are compared: -0.0 becomes 0.0."""
    return f"({value.sql} + 0)" if value.type.kind in FRACTIONAL else f"({value.sql})"


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
        arguments = [_returned(argument) for argument in over.call.arguments]
        arguments.insert(1, str(over.call.parameters[0]))
        return f"{name}({', '.join(arguments)}{' IGNORE NULLS' if present else ''}) {window}"

    return sql


def _pick(name: str, present: bool = False) -> _Part:
    """The value of one row of the frame; row numbers order peers."""

    def sql(over: Over, window: str) -> str:
        assert over.frame is not None
        arguments = [_returned(over.call.arguments[0]), *map(str, over.call.parameters)]
        order = "" if over.frame.rows else f" ORDER BY {', '.join([*_orders(over), ROW])}"
        return f"{name}({', '.join(arguments)}{order}{' IGNORE NULLS' if present else ''}) {window}"

    return sql


def _orders(over: Over) -> list[str]:
    return [_ordered(_plain(item.value), item) for item in over.order]


def _returned(value: Expression) -> str:
    """A value that is returned unchanged; as a FLOAT, a zero would lose its sign when DuckDB sorts."""
    return f"CAST({value.sql} AS DOUBLE)" if value.type.kind is Kind.FLOAT else f"({value.sql})"


def _count(over: Over, window: str) -> str:
    values = over.call.arguments
    if len(values) < 2:
        return f"count({f'({values[0].sql})' if values else '*'}) {window}"
    missing = " OR ".join(f"({value.sql}) IS NULL" for value in values)
    return f"count(CASE WHEN {missing} THEN NULL ELSE 1 END) {window}"


def _sum(over: Over, window: str) -> str:
    value, kind = _plain(over.call.arguments[0]), over.call.type
    if kind.kind in FRACTIONAL:
        return _exact_sum(value, window)
    # A sum that overflows raises an error, in DuckDB's type or in this cast.
    return f"CAST(sum({value}) {window} AS {kind.sql})"


def _exact_sum(value: str, window: str) -> str:
    # Kahan summation returns NaN for infinities.
    total = f"sum({value}) {window}"
    return f"CASE WHEN isfinite({total}) THEN fsum({value}) {window} ELSE {total} END"


def _average(over: Over, window: str) -> str:
    value = _plain(over.call.arguments[0])
    return f"({_exact_sum(value, window)}) / count({value}) {window}"


def _called(name: str) -> _Part:
    return lambda over, window: f"{name}({_plain(over.call.arguments[0])}) {window}"


_SQL: dict[str, _Part] = {
    **{name: _bare(name) for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")},
    "ntile": _ntile,
    "lag": _moved("lag"),
    "lead": _moved("lead"),
    "lag_present": _moved("lag", present=True),
    "lead_present": _moved("lead", present=True),
    "first": _pick("first_value"),
    "last": _pick("last_value"),
    "first_present": _pick("first_value", present=True),
    "last_present": _pick("last_value", present=True),
    "nth_value": _pick("nth_value"),
    "nth_value_present": _pick("nth_value", present=True),
    "count": _count,
    "sum": _sum,
    "avg": _average,
    **{name: _called(name) for name in ("min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop")},
}
