"""Argument and result types of aggregates, as in Spark: the rules that the table of aggregates refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tureen.aggregate_functions import AggregateTypes
from tureen.errors import TypeMismatch
from tureen.language.binding.coerce import coerce, explicit_cast, type_name
from tureen.language.binding.scope import Scope
from tureen.language.tree import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Call, Const, Expr
from tureen.language.types import MAX_PRECISION
from tureen.query import Direction
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type, array_of


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


def where_true(condition: Expr, value: Expr) -> Expr:
    """CASE WHEN condition THEN value END."""
    type_ = value.type or INT
    return Call("case", (condition, value, Const(None, type_, value.at)), type_, value.at)


def _number(scope: Scope, name: str, value: Expr) -> Expr:
    if value.type is None and isinstance(value, Const):
        return Const(None, DOUBLE, value.at)
    if value.type is None or value.type.kind not in NUMERIC:
        raise TypeMismatch(
            f"{name} requires a number, got {type_name(value)}",
            hint="write CAST(… AS DOUBLE) around it",
            location=scope.source.location(value.at),
        )
    return value


def _booleans(scope: Scope, name: str, arguments: list[Expr]) -> tuple[Expr, ...]:
    value = arguments[0]
    if value.type is None and isinstance(value, Const):
        value = Const(None, BOOLEAN, value.at)
    if value.type != BOOLEAN:
        raise TypeMismatch(
            f"{name} requires a condition, got {type_name(value)}",
            hint="compare it with a value",
            location=scope.source.location(value.at),
        )
    return (value,)


def count(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:  # noqa: ARG001
    """COUNT: of rows if all arguments are constants, otherwise of rows without NULL arguments."""
    if all(isinstance(argument, Const) and argument.value is not None for argument in arguments):
        return BoundAggregate(name, (), BIGINT)
    return BoundAggregate(name, tuple(map(_typed_null, arguments)), BIGINT)


def _typed_null(argument: Expr) -> Expr:
    is_untyped = isinstance(argument, Const) and argument.type is None
    return Const(None, INT, argument.at) if is_untyped else argument


def count_if(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """COUNT_IF: the COUNT of a value that is NULL unless the condition holds."""
    (condition,) = _booleans(scope, name, arguments)
    return BoundAggregate("count", (where_true(condition, Const(1, INT, condition.at)),), BIGINT)


def all_or_any(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """BOOL_AND and BOOL_OR: all are true if the minimum is true, any is true if the maximum is."""
    return BoundAggregate("min" if name == "bool_and" else "max", _booleans(scope, name, arguments), BOOLEAN)


def sum_or_avg(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """SUM and AVG: a DECIMAL with more digits, a DOUBLE, or a BIGINT for the sum of integers."""
    value = _number(scope, name, arguments[0])
    kind = value.type.kind if value.type is not None else Kind.DOUBLE
    if kind is Kind.DECIMAL:
        assert value.type is not None
        extra = (10, 0) if name == "sum" else (4, 4)
        precision, scale = value.type.precision + extra[0], value.type.scale + extra[1]
        return BoundAggregate(
            name, (value,), Type(Kind.DECIMAL, min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))
        )
    if kind in FRACTIONAL or name == "avg":
        return BoundAggregate(name, (coerce(scope.source, value, DOUBLE),), DOUBLE)
    return BoundAggregate(name, (value,), BIGINT)


def double_of_number(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """Statistics of one number: a DOUBLE."""
    return BoundAggregate(name, (coerce(scope.source, _number(scope, name, arguments[0]), DOUBLE),), DOUBLE)


def distinct_count(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:  # noqa: ARG001
    """APPROX_COUNT_DISTINCT: an exact count satisfies any permitted error."""
    return BoundAggregate("count", tuple(arguments), BIGINT, distinct=True)


def percentile(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """PERCENTILE and MEDIAN: a DOUBLE."""
    return BoundAggregate("percentile", double_of_number(scope, name, arguments).arguments, DOUBLE)


def approx_percentile(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """APPROX_PERCENTILE: one of the values, which are numbers, dates or timestamps."""
    (value,) = arguments
    if value.type is not None and value.type.kind in NUMERIC | {Kind.DATE, Kind.TIMESTAMP}:
        return BoundAggregate(name, (value,), value.type)
    return double_of_number(scope, name, arguments)


def pair_statistic(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """Statistics of the rows in which both arguments are not NULL."""
    first, second = (coerce(scope.source, _number(scope, name, argument), DOUBLE) for argument in arguments)
    if name == "regr_count":
        return BoundAggregate("count", (first, second), BIGINT)
    if name in ("regr_avgx", "regr_avgy"):
        value, other = (second, first) if name == "regr_avgx" else (first, second)
        present = Call("not", (Call("isnull", (other,), BOOLEAN, other.at),), BOOLEAN, other.at)
        return BoundAggregate("avg", (where_true(present, value),), DOUBLE)
    return BoundAggregate(name, (first, second), DOUBLE)


def one_integer(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """BIT_AND, BIT_OR and BIT_XOR: the integral type of the argument."""
    aggregate = one_value(scope, name, arguments)
    if aggregate.type.kind not in INTEGRAL:
        raise TypeMismatch(
            f"{name} requires an integer, got {type_name(arguments[0])}",
            location=scope.source.location(arguments[0].at),
        )
    return aggregate


def all_values(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """All values as an ARRAY, or joined to a STRING."""
    aggregate = one_value(scope, name, arguments)
    if name != "listagg":
        return BoundAggregate(name, aggregate.arguments, array_of(aggregate.type))
    return BoundAggregate(name, (explicit_cast(scope.source, arguments[0], STRING), *arguments[1:]), STRING)


def one_value(scope: Scope, name: str, arguments: list[Expr]) -> BoundAggregate:
    """MIN, MAX and other aggregates that return one of the values: the type is that of the value."""
    type_ = arguments[0].type
    if type_ is None:
        raise TypeMismatch(
            f"{name} of an untyped NULL is not supported",
            hint="write CAST(NULL AS …)",
            location=scope.source.location(arguments[0].at),
        )
    return BoundAggregate(name, tuple(arguments), type_)


TypeRule = Callable[[Scope, str, list[Expr]], BoundAggregate]
"""Casts the arguments of an aggregate of a name, and gives it its result type."""

TYPE_RULES: dict[AggregateTypes, TypeRule] = {
    AggregateTypes.COUNT: count,
    AggregateTypes.COUNT_IF: count_if,
    AggregateTypes.DISTINCT_COUNT: distinct_count,
    AggregateTypes.SUM_OR_AVG: sum_or_avg,
    AggregateTypes.DOUBLE_OF_NUMBER: double_of_number,
    AggregateTypes.PAIR_STATISTIC: pair_statistic,
    AggregateTypes.PERCENTILE: percentile,
    AggregateTypes.APPROX_PERCENTILE: approx_percentile,
    AggregateTypes.ONE_VALUE: one_value,
    AggregateTypes.ONE_INTEGER: one_integer,
    AggregateTypes.ALL_OR_ANY: all_or_any,
    AggregateTypes.ALL_VALUES: all_values,
}
