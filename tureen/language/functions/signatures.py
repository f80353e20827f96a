"""Signatures of functions: parameters, result type and DuckDB SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tureen.language.tree import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, Const, Expr
from tureen.language.types import at_least_int
from tureen.schema import INTEGRAL, NUMERIC, SCALARS, Kind, Type

Args = tuple[Expr, ...]


class UnsupportedCall(Exception):
    """A call with unsupported arguments; the hint says what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: the kinds it accepts, and the type arguments are cast to; None for no cast."""

    kinds: frozenset[Kind]
    to: Type | Callable[[Type], Type] | None
    null: Type
    constant: bool = False

    def target(self, arg: Expr) -> Type | None:
        """The type that an argument is cast to; None if it is not accepted."""
        if self.constant and not isinstance(arg, Const):
            return None
        if isinstance(arg, Const) and arg.type is None:
            return self.null
        if arg.type is None or arg.type.kind not in self.kinds:
            return None
        if callable(self.to):
            return self.to(arg.type)
        return self.to or arg.type


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    In its SQL `{0}` is the first argument. `defaults` are the values of trailing arguments that are omitted. A `strict`
    function returns NULL if any argument is NULL, whatever its SQL returns; `raises` is whether it can raise.
    """

    params: tuple[Param, ...]
    result: Type | Callable[[Args], Type]
    sql: str | Callable[[Args], str]
    defaults: tuple[Const, ...] = ()
    strict: bool = False
    raises: bool = False

    def type_of(self, args: Args) -> Type:
        """The type of a call's result."""
        return self.result if isinstance(self.result, Type) else self.result(args)

    def template(self, args: Args) -> str:
        """The SQL of a call."""
        text = self.sql if isinstance(self.sql, str) else self.sql(args)
        if not self.strict:
            return text
        any_null = " OR ".join(f"{{{i}}} IS NULL" for i in range(len(args)))
        return f"CASE WHEN {any_null} THEN NULL ELSE {text} END"


def only(*kinds: Kind) -> Param:
    """A parameter of certain kinds, without a cast."""
    return Param(frozenset(kinds), None, Type(kinds[0]))


def constant(type_: Type) -> Param:
    """A parameter that must be a constant of a type."""
    return Param(frozenset({type_.kind}), type_, type_, constant=True)


def const(value: int | float | str, type_: Type) -> Const:
    """A constant that is not in the text."""
    return Const(value, type_, 0)


# Spark casts any argument of a string function to STRING.
text = Param(frozenset(SCALARS), STRING, STRING)
boolean_or_whole = Param(INTEGRAL | {Kind.BOOLEAN}, BIGINT, BIGINT)
number = Param(NUMERIC, None, DOUBLE)
double = Param(NUMERIC, DOUBLE, DOUBLE)
whole = Param(INTEGRAL, at_least_int, INT)
integer = Param(INTEGRAL - {Kind.BIGINT}, INT, INT)
bigint = Param(INTEGRAL, BIGINT, BIGINT)
date = Param(frozenset({Kind.DATE, Kind.TIMESTAMP}), DATE, DATE)
timestamp = Param(frozenset({Kind.DATE, Kind.TIMESTAMP}), TIMESTAMP, TIMESTAMP)
instant = Param(frozenset({Kind.TIMESTAMP}), TIMESTAMP, TIMESTAMP)


def same(args: Args) -> Type:
    """The type of the first argument."""
    assert args[0].type is not None
    return args[0].type


def escaped(sql: str) -> str:
    """SQL without arguments, with its braces escaped for a template."""
    return sql.replace("{", "{{").replace("}", "}}")
