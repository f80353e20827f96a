"""Frames: `ROWS BETWEEN … AND …` and `RANGE BETWEEN … AND …` of a window function."""

from __future__ import annotations

import math

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported
from tureen.language.binding.bind import bind
from tureen.language.binding.coerce import explicit_cast
from tureen.language.binding.scope import Scope
from tureen.language.moments import DAY_MICROS
from tureen.language.tree import INT, Const, IntervalConst
from tureen.predicate import Key
from tureen.query import Frame, Order
from tureen.schema import NUMERIC, Kind, Type

_CURRENT = "CURRENT ROW"
_FORMS = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"


def read_frame(scope: Scope, window: exp.Window, order: tuple[Order, ...]) -> Frame | None:
    """The frame of a window; None if it has none."""
    spec = window.args.get("spec")
    if spec is None:
        return None
    rows = str(spec.args.get("kind")).upper() == "ROWS"
    if not rows and str(spec.args.get("kind")).upper() != "RANGE":
        raise Unsupported(
            f"a {spec.args.get('kind')} frame is not supported",
            hint=f"write {_FORMS}",
            location=scope.source.node(window),
        )
    if spec.args.get("exclude"):
        raise Unsupported("EXCLUDE is not supported", hint="leave it out", location=scope.source.node(window))
    if not rows and not order:
        raise SqlError(
            "a RANGE frame requires ORDER BY", hint="write ORDER BY before it", location=scope.source.node(window)
        )
    start = _bound(scope, window, "start", order, rows)
    end = _bound(scope, window, "end", order, rows)
    if start is not None and end is not None and start > end:  # type: ignore[operator]
        raise SqlError("the frame ends before it starts", hint=f"write {_FORMS}", location=scope.source.node(window))
    return Frame(rows, start, end)


def _bound(scope: Scope, window: exp.Window, which: str, order: tuple[Order, ...], rows: bool) -> Key | None:
    """The distance of a frame's bound from the current row; None for UNBOUNDED."""
    spec = window.args["spec"]
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
    if value is None or value == _CURRENT:
        return 0
    before = side == "PRECEDING"
    if value == "UNBOUNDED":
        if before != (which == "start"):
            raise SqlError(
                f"a frame cannot {which} at UNBOUNDED {side}",
                hint=f"write {_FORMS}",
                location=scope.source.node(window),
            )
        return None
    bound = bind(scope, value)
    if isinstance(bound, Const | IntervalConst) and not (isinstance(bound, Const) and bound.value is None):
        distance = _rows(scope, bound) if rows else _range(scope, bound, order)
        return -distance if before else distance
    raise SqlError(
        "the bound of a frame must be a constant", hint=f"write {_FORMS}", location=scope.source.location(bound.at)
    )


def _rows(scope: Scope, bound: Const | IntervalConst) -> int:
    if isinstance(bound, Const) and bound.type == INT and isinstance(bound.value, int):
        return bound.value
    raise TypeMismatch(
        "the bound of a ROWS frame must be an INT", hint=f"write {_FORMS}", location=scope.source.location(bound.at)
    )


def _range(scope: Scope, bound: Const | IntervalConst, order: tuple[Order, ...]) -> int | float:
    """A distance in the key domain of the ORDER BY expression."""
    if len(order) != 1:
        raise SqlError(
            "a RANGE frame with an offset requires one ORDER BY expression",
            hint="order by one value",
            location=scope.source.location(bound.at),
        )
    order_type = order[0].value.type
    if isinstance(bound, IntervalConst):
        return _interval(scope, bound, order_type)
    if order_type.kind is Kind.DATE and bound.type == INT and isinstance(bound.value, int):
        return bound.value
    if order_type.kind not in NUMERIC or bound.type is None or bound.type.kind not in NUMERIC:
        raise _mismatch(scope, bound, order_type)
    cast = explicit_cast(scope.source, bound, order_type)
    assert isinstance(cast, Const)
    assert isinstance(cast.value, int | float)
    if not math.isfinite(cast.value):
        raise SqlError(
            "the bound of a frame must be finite", hint="use UNBOUNDED", location=scope.source.location(bound.at)
        )
    return cast.value


def _interval(scope: Scope, bound: IntervalConst, order_type: Type) -> int:
    if bound.months:
        raise Unsupported(
            "a RANGE frame of months is not supported",
            hint="write it in DAYS, HOURS or MINUTES",
            location=scope.source.location(bound.at),
        )
    if order_type.kind is Kind.TIMESTAMP:
        return bound.micros
    if order_type.kind is Kind.DATE and bound.micros % DAY_MICROS == 0:
        return bound.micros // DAY_MICROS
    raise _mismatch(scope, bound, order_type)


def _mismatch(scope: Scope, bound: Const | IntervalConst, order_type: Type) -> TypeMismatch:
    return TypeMismatch(
        f"this bound of a RANGE frame is not supported for ORDER BY {order_type.sql}",
        hint="use a number for numbers, days for a DATE, an INTERVAL for a TIMESTAMP; or use ROWS",
        location=scope.source.location(bound.at),
    )
