"""The bound tree: an expression whose names and types are known.

Equality ignores the offset in the text (`at`).

Every constant is represented by its key (see `tureen.predicate`): BOOLEAN 0/1, DECIMAL as the unscaled integer,
DATE as days and TIMESTAMP as microseconds since 1970. The type of a bare NULL is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.predicate import Key
from tureen.schema import Column, Kind, Type

BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)


USER_FUNCTION = "user function"
"""The operator of a call of a user function."""


@dataclass(frozen=True, slots=True)
class Const:
    """A constant."""

    value: Key | None
    type: Type | None
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of the stream, or of a grouping's result."""

    column: Column
    at: int = field(compare=False)

    @property
    def type(self) -> Type:
        """The column's type."""
        return self.column.type


@dataclass(frozen=True, slots=True)
class IntervalConst:
    """An interval constant: calendar months, or a fixed length."""

    months: int
    micros: int
    at: int = field(compare=False)

    @property
    def type(self) -> None:
        """None: an interval has no type, it can only be added to dates and timestamps."""
        return


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function over bound arguments.

    `op` is one of the operators (`and or not = <> < <= > >= <=> in isnull like case cast + - * / % div neg`) or
    the name of a function in `tureen.language.binding.calls`.
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    at: int = field(compare=False)
    extra: str = ""
    written: str = field(default="", compare=False)
    """How it is written in SQL, with places for its arguments, if `op` and the arguments do not tell."""


Expr = Const | Ref | IntervalConst | Call


def children(expr: Expr) -> tuple[Expr, ...]:
    """The arguments of an expression."""
    return expr.args if isinstance(expr, Call) else ()


def columns_in(expr: Expr) -> tuple[str, ...]:
    """The columns that an expression refers to, without duplicates, in alphabetical order."""
    names: set[str] = set()
    pending: list[Expr] = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Ref):
            names.add(node.column.name)
        pending.extend(children(node))
    return tuple(sorted(names))
