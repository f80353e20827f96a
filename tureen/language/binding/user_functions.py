"""Calls of user functions: arguments are cast as Spark casts those of its own functions."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tureen.aggregate_functions import AGGREGATE_NAMES
from tureen.errors import DuplicateName, SqlError, TypeMismatch
from tureen.functions.function_calls import know
from tureen.functions.user_function import UserFunction, sql_name
from tureen.language.binding.coerce import a_type, cast_const, coerce
from tureen.language.binding.rewrites import Bind
from tureen.language.source import Source, offset_of
from tureen.language.tree import USER_FUNCTION, Call, Const, Expr, IntervalConst, columns_in
from tureen.language.types import keeps_every_value
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type

_RESERVED = frozenset({"tumble", "hop", "session", "window", "now", "window_start", "window_end", "grouping"})


def bind_user_function(source: Source, function: UserFunction, node: exp.Expression, bind: Bind) -> Expr:
    """Bind a call of a user function. It is called with NULLs too, so it is not folded and has no NULL of its own."""
    given = [bind(argument) for argument in node.expressions]
    if len(given) != len(function.arguments):
        expected = len(function.arguments)
        raise SqlError(
            f"{function.name} takes {expected} argument{'s' * (expected != 1)}, got {len(given)}",
            hint=f"it is {function.signature}",
            location=source.node(node),
        )
    args = tuple(_coerced(source, function, arg, target) for arg, target in zip(given, function.arguments, strict=True))
    know(function)
    name = sql_name(function, constant=not any(columns_in(arg) for arg in args))
    places = ", ".join(f"{{{number}}}" for number in range(len(args)))
    return Call(USER_FUNCTION, args, function.returns, offset_of(node), extra=f"{name}({places})")


def _coerced(source: Source, function: UserFunction, arg: Expr, target: Type) -> Expr:
    """An argument cast to its type, where Spark would cast it: a wider type, a STRING, or the type of a constant."""
    if isinstance(arg, Const) and (arg.type is None or arg.type.kind is Kind.STRING or _is_exact(arg, target)):
        return cast_const(source, arg, target)
    if arg.type is not None and not isinstance(arg, IntervalConst) and _is_implicit(arg.type, target):
        return coerce(source, arg, target)
    raise TypeMismatch(
        f"{function.name} does not accept {a_type(arg)} here",
        hint=f"it is {function.signature}; use CAST(… AS {target.sql})",
        location=source.location(arg.at),
    )


def _is_exact(const: Const, target: Type) -> bool:
    """Whether a constant without an exponent is a number of another type; no digits after its point get lost."""
    assert const.type is not None
    if const.type.kind is not Kind.DECIMAL or target.kind in FRACTIONAL:
        return const.type.kind in INTEGRAL | {Kind.DECIMAL} and target.kind in NUMERIC
    lost = 10 ** max(const.type.scale - target.scale, 0)
    return target.kind in NUMERIC and isinstance(const.value, int) and const.value % lost == 0


def _is_implicit(given: Type, target: Type) -> bool:
    if given.kind is Kind.DECIMAL and target.kind is Kind.DECIMAL:
        return given.scale <= target.scale and keeps_every_value(given, target)
    if keeps_every_value(given, target):
        return True
    if given.kind is Kind.ARRAY:
        return False
    if target.kind is Kind.STRING:
        return True
    return target.kind in FRACTIONAL and given.kind in INTEGRAL | {Kind.DECIMAL}


def check_free_name(name: str, built_in: frozenset[str]) -> None:
    """Raise if the language has a function of that name, or reads it as anything but a call."""
    is_call = False
    try:
        tree = sqlglot.parse_one(f"SELECT {name}(a, b)", read="spark")
        item = tree.expressions[0]
        is_call = isinstance(item, exp.Anonymous) and item.name == name
    except SqlglotError:
        pass
    if not is_call or name.lower() in built_in | _RESERVED | {*map(str.lower, AGGREGATE_NAMES)}:
        raise DuplicateName(f"'{name}' is a built-in function or a keyword of SQL", hint="choose another name")
