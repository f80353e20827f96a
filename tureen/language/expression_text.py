"""Bound expressions as SQL for people to read.

What DuckDB evaluates has explicit casts, and guards wherever it differs from Spark: a page of text for `upper(sym)`.
Here a call is written as it is in a query. Columns are in double quotes until `with_names` replaces them, because only
the whole query knows what its inputs are called.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tureen.functions.user_function import shown_sql
from tureen.language.spelling import key_literal, sql_literal
from tureen.language.tree import STRING, USER_FUNCTION, Call, Const, Expr, IntervalConst, Ref

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"((?:[^"]|"")*)\"""", re.DOTALL)
_INFIX = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "div", "and", "or"})
_NAMES = {
    "try +": "try_add",
    "try -": "try_subtract",
    "try *": "try_multiply",
    "try /": "try_divide",
}
"""The names of calls whose operators are no functions."""
_UNITS = (
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MICROSECOND", 1),
)


def expression_text(expr: Expr) -> str:
    """An expression with its columns in double quotes.

    >>> from tureen.language.tree import BOOLEAN, INT
    >>> from tureen.schema import Column
    >>> price = Ref(Column("price", INT), 0)
    >>> expression_text(Call("not", (Call("<", (price, Const(3, INT, 0)), BOOLEAN, 0),), BOOLEAN, 0))
    'NOT ("price" < 3)'
    """
    if isinstance(expr, Ref):
        return '"' + expr.column.name.replace('"', '""') + '"'
    if isinstance(expr, Const):
        return "NULL" if expr.value is None or expr.type is None else key_literal(expr.value, expr.type)
    return _interval(expr) if isinstance(expr, IntervalConst) else _call(expr)


def with_names(text: str, name_of: Callable[[str], str]) -> str:
    """A text of `expression_text`, or any SQL, with each column in double quotes replaced by what `name_of` returns.

    >>> print(with_names('''"a" || 'not "b"' < "c"''', str.upper))
    A || 'not "b"' < C
    """
    return _QUOTED.sub(lambda match: match[0] if match[1] is None else name_of(match[1].replace('""', '"')), text)


def _interval(interval: IntervalConst) -> str:
    if interval.months:
        return f"INTERVAL '{interval.months}' MONTH"
    unit, size = next((unit, size) for unit, size in _UNITS if interval.micros % size == 0)
    return f"INTERVAL '{interval.micros // size}' {unit}"


def _call(call: Call) -> str:
    if call.written:
        return call.written.format(*map(_operand, call.args))
    match call.op:
        case "+" if isinstance(call.args[1], IntervalConst) and call.args[1].micros < 0:
            earlier = IntervalConst(0, -call.args[1].micros, call.at)
            return f"{_operand(call.args[0])} - {_interval(earlier)}"
        case op if op in _INFIX:
            return f" {op.upper()} ".join(map(_operand, call.args))
        case "not":
            return f"NOT {_operand(call.args[0])}"
        case "neg":
            return f"-{_operand(call.args[0])}"
        case "isnull" | "istrue" | "isfalse":
            return f"{_operand(call.args[0])} IS {call.op.removeprefix('is').upper()}"
        case "in":
            value, *items = call.args
            return f"{_operand(value)} IN ({', '.join(map(expression_text, items))})"
        case "like":
            return f"{_operand(call.args[0])} LIKE {sql_literal(call.extra, STRING)}"
        case "case":
            *pairs, otherwise = map(expression_text, call.args)
            whens = (f"WHEN {when} THEN {then}" for when, then in zip(pairs[::2], pairs[1::2], strict=True))
            return f"CASE {' '.join(whens)} ELSE {otherwise} END"
        case "cast" | "try_cast":
            return f"{call.op.upper()}({expression_text(call.args[0])} AS {call.type.sql})"
        case op if op == USER_FUNCTION:
            return shown_sql(call.extra.format(*map(_operand, call.args)))
    return f"{_NAMES.get(call.op, call.op)}({', '.join(map(expression_text, call.args))})"


def _operand(expr: Expr) -> str:
    """An expression as an operand: in parentheses if it has an operator itself."""
    text = expression_text(expr)
    return f"({text})" if isinstance(expr, Call) and _has_operator(expr) else text


def _has_operator(call: Call) -> bool:
    if call.written:
        return not call.written[0].isalpha()
    return call.op in _INFIX or call.op in ("not", "neg", "in", "like", "isnull", "istrue", "isfalse")
