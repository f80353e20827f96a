"""The types of aggregates: which arguments each takes, and what Spark gives for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tureen.errors import TypeMismatch
from tureen.language.binding.coerce import coerce, explicit_cast, type_name
from tureen.language.binding.ordered_aggregates import LISTS
from tureen.language.binding.scope import Scope
from tureen.language.tree import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Call, Const, Expr
from tureen.language.types import MAX_PRECISION
from tureen.query import Direction
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type, array_of

_MOMENTS = frozenset({"stddev_samp", "stddev_pop", "var_samp", "var_pop"})
_BITS = frozenset({"bit_and", "bit_or", "bit_xor"})
PAIRS = frozenset(
    {"corr", "covar_pop", "covar_samp"}
    | {f"regr_{one}" for one in ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")}
)
"""Statistics of two values."""


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """An aggregate over bound arguments; see `tureen.query.Aggregate`."""

    function: str
    arguments: tuple[Expr, ...]
    type: Type
    distinct: bool = False
    parameters: tuple[float, ...] = ()
    order: tuple[Direction, ...] = ()
    separator: str = ""


def typed_aggregate(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """The aggregate of that name over bound arguments, which are made of the types that it takes."""
    return _TYPED[name](scope, name, arguments) if name in _TYPED else _plain(scope, name, arguments)


def where_true(condition: Expr, value: Expr) -> Expr:
    """A value where a condition holds, and NULL elsewhere."""
    kind = value.type or INT
    return Call("case", (condition, value, Const(None, kind, value.at)), kind, value.at)


def _number(scope: Scope, name: str, one: Expr) -> Expr:
    if one.type is None and isinstance(one, Const):
        return Const(None, DOUBLE, one.at)
    if one.type is None or one.type.kind not in NUMERIC:
        raise TypeMismatch(
            f"{name} is over numbers, not {type_name(one)}",
            hint="write CAST(… AS DOUBLE) around it",
            place=scope.source.place(one.at),
        )
    return one


def _booleans(scope: Scope, name: str, arguments: list[Expr]) -> tuple[Expr, ...]:
    one = arguments[0]
    if one.type is None and isinstance(one, Const):
        one = Const(None, BOOLEAN, one.at)
    if one.type != BOOLEAN:
        raise TypeMismatch(
            f"{name} is over conditions, not {type_name(one)}",
            hint="compare it with something",
            place=scope.source.place(one.at),
        )
    return (one,)


def _count(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:  # noqa: ARG001
    if all(isinstance(one, Const) and one.value is not None for one in arguments):
        return BoundAggregate(name, (), BIGINT)
    typed = (Const(None, INT, one.at) if isinstance(one, Const) and one.type is None else one for one in arguments)
    return BoundAggregate(name, tuple(typed), BIGINT)


def _count_if(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    (condition,) = _booleans(scope, name, arguments)
    one = Const(1, INT, condition.at)
    return BoundAggregate("count", (where_true(condition, one),), BIGINT)


def _truth(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    # All are true where the least is, and some where the greatest is.
    return BoundAggregate("min" if name == "bool_and" else "max", _booleans(scope, name, arguments), BOOLEAN)


def _sum(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    one = _number(scope, name, arguments[0])
    kind = one.type.kind if one.type is not None else Kind.DOUBLE
    if kind is Kind.DECIMAL:
        assert one.type is not None
        extra = (10, 0) if name == "sum" else (4, 4)
        precision, scale = one.type.precision + extra[0], one.type.scale + extra[1]
        return BoundAggregate(
            name, (one,), Type(Kind.DECIMAL, min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))
        )
    if kind in FRACTIONAL or name == "avg":
        return BoundAggregate(name, (coerce(scope.source, one, DOUBLE),), DOUBLE)
    return BoundAggregate(name, (one,), BIGINT)


def _moment(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    return BoundAggregate(name, (coerce(scope.source, _number(scope, name, arguments[0]), DOUBLE),), DOUBLE)


def _distinct_count(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:  # noqa: ARG001
    return BoundAggregate(name, tuple(arguments), BIGINT)


def _quantile(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    one = arguments[0]
    if name == "approx_percentile":
        orderable = one.type is not None and one.type.kind in NUMERIC | {Kind.DATE, Kind.TIMESTAMP}
        if orderable and one.type is not None:
            return BoundAggregate(name, (one,), one.type)
    return BoundAggregate(
        "approx_percentile" if name == "approx_percentile" else "percentile",
        (coerce(scope.source, _number(scope, name, one), DOUBLE),),
        DOUBLE,
    )


def _pair(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """Statistics of the rows in which both arguments are there."""
    first, second = (coerce(scope.source, _number(scope, name, one), DOUBLE) for one in arguments)
    if name == "regr_count":
        return BoundAggregate("count", (first, second), BIGINT)
    if name in ("regr_avgx", "regr_avgy"):
        value, other = (second, first) if name == "regr_avgx" else (first, second)
        present = Call("not", (Call("isnull", (other,), BOOLEAN, other.at),), BOOLEAN, other.at)
        return BoundAggregate("avg", (where_true(present, value),), DOUBLE)
    return BoundAggregate(name, (first, second), DOUBLE)


def _bits(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    found = _plain(scope, name, arguments)
    if found.type.kind not in INTEGRAL:
        raise TypeMismatch(
            f"{name} is over whole numbers, not {type_name(arguments[0])}", place=scope.source.place(arguments[0].at)
        )
    return found


def _listed(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """All values as an ARRAY, or as one text."""
    found = _plain(scope, name, arguments)
    if name != "listagg":
        return BoundAggregate(name, found.arguments, array_of(found.type))
    return BoundAggregate(name, (explicit_cast(scope.source, arguments[0], STRING), *arguments[1:]), STRING)


def _number_within(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    return BoundAggregate(name, (coerce(scope.source, _number(scope, name, arguments[0]), DOUBLE),), DOUBLE)


def _plain(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """MIN, MAX and those that give one of the values: the type is that of the value."""
    kind = arguments[0].type
    if kind is None:
        raise TypeMismatch(
            f"{name} of a NULL has no type", hint="write CAST(NULL AS …)", place=scope.source.place(arguments[0].at)
        )
    return BoundAggregate(name, tuple(arguments), kind)


_TYPED: dict[str, Callable[[Scope, str, list[Expr]], BoundAggregate]] = {
    "count": _count,
    "count_if": _count_if,
    "bool_and": _truth,
    "bool_or": _truth,
    "sum": _sum,
    "avg": _sum,
    **dict.fromkeys(_MOMENTS, _moment),
    "approx_count_distinct": _distinct_count,
    "approx_percentile": _quantile,
    "percentile": _quantile,
    "median": _quantile,
    **dict.fromkeys(PAIRS, _pair),
    **dict.fromkeys(_BITS, _bits),
    **dict.fromkeys(LISTS, _listed),
    "percentile_cont": _number_within,
    "percentile_disc": _number_within,
}
