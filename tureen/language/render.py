"""From the bound tree to DuckDB SQL that means what Spark means."""

from __future__ import annotations

import math

from tureen.errors import Unsupported
from tureen.language.moments import DAY_MICROS, day_text, in_range, moment_text
from tureen.language.raising import can_raise
from tureen.language.tree import Call, Const, Expr, Lapse, Ref
from tureen.schema import FRACTIONAL, INTEGRAL, Kind, Type

LONGEST = 100_000
"""The longest SQL of one condition; guards against division double their operands."""

# An instant is a TIMESTAMP in UTC throughout, so that nothing depends on the session's time zone.
_NAMES = {Kind.INT: "INTEGER", Kind.STRING: "VARCHAR"}


_NULL_FIRST = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*"})


def sql_type(one: Type) -> str:
    """A type as DuckDB writes it."""
    return one.sql if one.kind is Kind.DECIMAL else _NAMES.get(one.kind, one.sql)


def render(expr: Expr) -> str:
    """The DuckDB SQL of an expression, one closed expression in itself."""
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
    if isinstance(expr, Lapse):
        return f"to_microseconds({expr.micros})"
    args = [_render(one) for one in expr.args]
    if sum(map(len, args)) > LONGEST:
        raise Unsupported("a condition is too long", hint="split it into simpler comparisons joined by AND")
    return _call(expr, args)


def _constant(const: Const) -> str:
    if const.value is None:
        return "NULL" if const.type is None else f"CAST(NULL AS {sql_type(const.type)})"
    assert const.type is not None
    kind, value = const.type.kind, const.value
    if isinstance(value, str):
        # A NUL cannot stand in DuckDB's text.
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


def _zero(one: Type) -> str:
    return f"CAST(0 AS {sql_type(one)})"


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
        # Spark does not look at the right side where the left is NULL; DuckDB evaluates both.
        return f"(CASE WHEN {args[0]} IS NULL THEN NULL ELSE {text} END)"
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
        case "cast":
            return _cast(call, args[0])
        case "neg":
            # DuckDB widens the negative of the least integer; Spark raises.
            return f"(- {args[0]})" if call.type.kind in FRACTIONAL else f"({_zero(call.type)} - {args[0]})"
        case "+" | "-" | "*" | "/" | "%" | "div":
            return _arithmetic(call, args)
    return f"CAST({call.extra.format(*args)} AS {sql_type(call.type)})"


def _logic(call: Call, args: list[str]) -> str:
    """AND and OR; DuckDB evaluates all parts on all rows, Spark none after the one that decides."""
    if not any(can_raise(one) for one in call.args[1:]):
        return "(" + f" {call.op.upper()} ".join(args) + ")"
    text = args[-1]
    decides = "FALSE" if call.op == "and" else "TRUE"
    for one in reversed(args[:-1]):
        text = f"(CASE WHEN {one} IS {decides} THEN {decides} ELSE {one} {call.op.upper()} {text} END)"
    return text


def _cast(call: Call, arg: str) -> str:
    source = call.args[0].type
    assert source is not None
    if source.kind in FRACTIONAL | {Kind.DECIMAL} and call.type.kind in INTEGRAL:
        # Spark cuts the fraction off, DuckDB rounds.
        return f"CAST(trunc({arg}) AS {sql_type(call.type)})"
    if source.kind is Kind.DECIMAL and call.type.kind is Kind.DOUBLE and source.precision > 15:
        # DuckDB divides two rounded numbers; a text is rounded once, as Spark does.
        return f"CAST(CAST({arg} AS VARCHAR) AS DOUBLE)"
    return f"CAST({arg} AS {sql_type(call.type)})"


def _arithmetic(call: Call, args: list[str]) -> str:
    left, right = args
    first, second = call.args
    if isinstance(second, Lapse) and first.type is not None and first.type.kind is Kind.DATE:
        days = second.micros // DAY_MICROS
        return f"CAST({left} {call.op} CAST({days} AS INTEGER) AS DATE)"
    if call.op in ("/", "%", "div"):
        op = {"div": "//"}.get(call.op, call.op)
        # DuckDB gives NULL or infinity, and raises for the remainder of the least integer by -1.
        by_one = f"WHEN {right} = -1 THEN 1 " if call.op == "%" and call.type.kind in INTEGRAL else ""
        guard = f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN error('division by zero') {by_one}ELSE {right} END"
        return f"({left} {op} ({guard}))"
    if call.type.kind is Kind.DECIMAL and call.op != "*":
        wide = sql_type(call.type)
        left, right = f"CAST({left} AS {wide})", f"CAST({right} AS {wide})"
    elif call.type.kind is Kind.DECIMAL and call.type.precision > 18:
        # DuckDB multiplies within 18 digits unless one side is wider.
        scale = first.type.scale if first.type is not None else 0
        left = f"CAST({left} AS DECIMAL({call.type.precision},{scale}))"
    text = f"({left} {call.op} {right})"
    return f"CAST({text} AS {sql_type(call.type)})" if call.type.kind is Kind.DECIMAL else text
