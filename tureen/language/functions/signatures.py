"""What a function is: the arguments it takes, the type it gives, and its DuckDB SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tureen.language.tree import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, Const, Expr
from tureen.language.types import at_least_int
from tureen.schema import INTEGRAL, NUMERIC, SCALARS, Kind, Type

Args = tuple[Expr, ...]


class Refused(Exception):
    """A call that is not taken: what is wrong with it, and what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: the kinds it takes, and the type that it brings them to; None leaves each as it is."""

    kinds: frozenset[Kind]
    to: Type | Callable[[Type], Type] | None
    null: Type
    constant: bool = False

    def target(self, arg: Expr) -> Type | None:
        """The type that an argument is brought to; None where it is not taken."""
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
    """One function.

    In its SQL `{0}` is the first argument. `defaults` are the last arguments where they are left out. A `strict`
    function is NULL where one of its arguments is, whatever its SQL would say; `raises` is whether it can raise.
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
        missing = " OR ".join(f"{{{i}}} IS NULL" for i in range(len(args)))
        return f"CASE WHEN {missing} THEN NULL ELSE {text} END"


def only(*kinds: Kind) -> Param:
    """A parameter of one of some kinds, taken as it is."""
    return Param(frozenset(kinds), None, Type(kinds[0]))


def constant(one: Type) -> Param:
    """A constant of one type."""
    return Param(frozenset({one.kind}), one, one, constant=True)


def const(value: int | float | str, one: Type) -> Const:
    """A constant that was not written."""
    return Const(value, one, 0)


# Spark casts any value to a STRING where a text is asked for.
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
    """A piece of SQL that has no arguments in it, though it may have braces."""
    return sql.replace("{", "{{").replace("}", "}}")
