"""Renders a bound tree as DuckDB SQL with Spark's semantics."""

from __future__ import annotations

import math

from tureen.errors import Unsupported
from tureen.language.duckdb.conversions import cast_sql
from tureen.language.duckdb.decimals import decimal_sql
from tureen.language.duckdb.raising import MOST_NEGATED, can_raise
from tureen.language.moments import DAY_MICROS, day_text, in_range, moment_text
from tureen.language.tree import USER_FUNCTION, Call, Const, Expr, IntervalConst, Ref
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

LONGEST = 100_000
"""The maximum length of the SQL of one condition; guards against division repeat their operands."""

# Timestamps are always TIMESTAMP in UTC, so that nothing depends on the session's time zone.
_NAMES = {Kind.INT: "INTEGER", Kind.STRING: "VARCHAR"}


SHORT = 60
"""The maximum length of the SQL of an argument that is repeated instead of bound to a name."""

_NULL_FIRST = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*"})
_EVALUATES_ALL = frozenset(
    {"/", "div", "coalesce", "concat", "concat_ws", "greatest", "least", "locate", USER_FUNCTION}
)


def sql_type(type_: Type) -> str:
    """The name of a type in DuckDB."""
    return type_.sql if type_.kind is Kind.DECIMAL else _NAMES.get(type_.kind, type_.sql)


def render(expr: Expr) -> str:
    """The DuckDB SQL of an expression, parenthesized where needed."""
    text = _render(expr)
    if len(text) > LONGEST:
        raise Unsupported("a condition is too long", hint="split it into simpler comparisons joined by AND")
    return text


def quote(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A column's name."""
    return '"' + name.replace('"', '""') + '"'


def _render(expr: Expr) -> str:
    if isinstance(expr, Ref):
        name = quote_name(expr.column.name)
        return f"make_timestamp(epoch_us({name}))" if expr.type.kind is Kind.TIMESTAMP else name
    if isinstance(expr, Const):
        return _constant(expr)
    if isinstance(expr, IntervalConst):
        return f"to_microseconds({expr.micros})"
    args = [_render(arg) for arg in expr.args]
    if sum(map(len, args)) > LONGEST:
        raise Unsupported("a condition is too long", hint="split it into simpler comparisons joined by AND")
    return _call(expr, args)


def _constant(const: Const) -> str:
    if const.value is None:
        return "NULL" if const.type is None else f"CAST(NULL AS {sql_type(const.type)})"
    assert const.type is not None
    kind, value = const.type.kind, const.value
    if isinstance(value, str):
        # DuckDB does not accept NUL in the text of a query.
        parts = [quote(part) for part in value.split("\0")]
        return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"
    if kind is Kind.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if kind is Kind.DATE:
        return f"DATE {quote(day_text(int(value)))}"
    if kind is Kind.TIMESTAMP:
        if not in_range(int(value)):
            raise Unsupported("a timestamp is beyond the years 1 to 9999")
        return f"TIMESTAMP {quote(moment_text(int(value)))}"
    if kind in FRACTIONAL:
        return f"CAST({quote(_float_text(float(value)))} AS {sql_type(const.type)})"
    if kind in INTEGRAL:
        return f"CAST({value} AS {sql_type(const.type)})"
    return f"CAST({quote(_decimal_text(int(value), const.type.scale))} AS {sql_type(const.type)})"


def _zero(type_: Type) -> str:
    return f"CAST(0 AS {sql_type(type_)})"


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "nan" if value != value else ("inf" if value > 0 else "-inf")


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return f"{'-' if unscaled < 0 else ''}{digits[:point]}.{digits[point:]}".rstrip(".")


def _call(call: Call, args: list[str]) -> str:
    text = _plain_call(call, args)
    if call.op in _NULL_FIRST and can_raise(call.args[1]):
        # Spark does not evaluate the right side if the left is NULL; DuckDB evaluates both.
        return f"(CASE WHEN {args[0]} IS NULL THEN NULL ELSE {text} END)"
    if call.op in ("/", "%", "div") and can_raise(call.args[0]):
        # Of a quotient, Spark evaluates the right side first.
        return f"(CASE WHEN {args[1]} IS NULL THEN NULL ELSE {text} END)"
    return text


def _plain_call(call: Call, args: list[str]) -> str:
    match call.op:
        case "and" | "or":
            return _logic(call, args)
        case "not":
            return f"(NOT {args[0]})"
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return f"({args[0]} {call.op} {args[1]})"
        case "<=>":
            return f"({args[0]} IS NOT DISTINCT FROM {args[1]})"
        case "isnull":
            return f"({args[0]} IS NULL)"
        case "istrue":
            return f"({args[0]} IS NOT DISTINCT FROM TRUE)"
        case "isfalse":
            return f"({args[0]} IS NOT DISTINCT FROM FALSE)"
        case "in":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        case "like":
            return f"({args[0]} LIKE {quote(call.extra)} ESCAPE '\\')"
        case "case":
            whens = zip(args[:-1:2], args[1:-1:2], strict=True)
            return f"(CASE {' '.join(f'WHEN {a} THEN {b}' for a, b in whens)} ELSE {args[-1]} END)"
        case "cast" | "try_cast":
            return _cast(call, args)
        case "neg":
            return _negative(call, args)
        case "+" | "-" | "*" | "/" | "%" | "div":
            return _arithmetic(call, args)
        case _ if call.op == USER_FUNCTION:
            return _filled(call, call.extra, args)
    return f"CAST({_filled(call, call.extra, args)} AS {sql_type(call.type)})"


def _negative(call: Call, args: list[str]) -> str:
    if call.type.kind in FRACTIONAL:
        return f"(- {args[0]})"
    # DuckDB widens the negated minimum integer; Spark raises.
    text = f"({_zero(call.type)} - {{0}})"
    if call.type.precision > MOST_NEGATED:
        # Spark rounds to 34 digits, which may then not fit.
        large = f"CAST('1e{MOST_NEGATED - call.type.scale}' AS DOUBLE)"
        text = f"(CASE WHEN abs({{0}}) >= {large} THEN error('a number of more than 34 digits') ELSE {text} END)"
    return _filled(call, text, args)


def _logic(call: Call, args: list[str]) -> str:
    """AND and OR: Spark short-circuits, DuckDB evaluates all operands for all rows."""
    if not any(can_raise(arg) for arg in call.args[1:]):
        return "(" + f" {call.op.upper()} ".join(args) + ")"
    text = args[-1]
    decides = "FALSE" if call.op == "and" else "TRUE"
    for arg in reversed(args[:-1]):
        text = f"(CASE WHEN {arg} IS {decides} THEN {decides} ELSE {arg} {call.op.upper()} {text} END)"
    return text


def _cast(call: Call, args: list[str]) -> str:
    source = call.args[0].type
    assert source is not None
    return _filled(call, cast_sql(source, call.type, sql_type(call.type), call.op == "try_cast"), args)


def _filled(call: Call, template: str, args: list[str]) -> str:
    """A template with its arguments; a long argument that occurs more than once is bound to a name."""
    names = list(args)
    for i, text in enumerate(args):
        if len(text) > SHORT and template.count(f"{{{i}}}") > 1:
            names[i] = f"_let{i}"
    text = template.format(*names)
    for i in reversed(range(len(args))):
        if call.op not in _EVALUATES_ALL and any(can_raise(arg) for arg in call.args[i + 1 :]):
            # Spark does not evaluate later arguments if an earlier one is NULL.
            text = f"CASE WHEN {names[i]} IS NULL THEN NULL ELSE {text} END"
        if names[i] is not args[i]:
            text = f"list_transform([{args[i]}], lambda {names[i]}: {text})[1]"
    return text


def _arithmetic(call: Call, args: list[str]) -> str:
    left, right = args
    first, second = call.args
    if isinstance(second, IntervalConst) and first.type is not None and first.type.kind is Kind.DATE:
        days = second.micros // DAY_MICROS
        return f"CAST({left} {call.op} CAST({days} AS INTEGER) AS DATE)"
    if first.type is not None and first.type.kind is Kind.DECIMAL:
        return _filled(call, decimal_sql(call), args)
    if call.op in ("/", "%", "div"):
        op = {"div": "//"}.get(call.op, call.op)
        # DuckDB returns NULL or infinity, and raises for the minimum integer % -1.
        by_one = f"WHEN {right} = -1 THEN 1 " if call.op == "%" and call.type.kind in INTEGRAL else ""
        guard = f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN error('division by zero') {by_one}ELSE {right} END"
        return f"({left} {op} ({guard}))"
    return f"({left} {call.op} {right})"
