"""Functions that are rewritten as other expressions of the bound tree."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported
from tureen.language.binding import arithmetic
from tureen.language.binding.coerce import coerce, common, compare_type, explicit_cast, fold, type_name
from tureen.language.binding.rewrites_time import read_by_pattern, shift_by_zone
from tureen.language.source import Source, offset_of
from tureen.language.tree import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    Call,
    Const,
    Expr,
)
from tureen.language.types import integer_range
from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type

Bind = Callable[[exp.Expression], Expr]
Rewrite = Callable[[Source, exp.Expression, Bind], Expr]


def _coalesce(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    return _variadic(source, node, [bind(argument) for argument in (node.this, *node.expressions)], "coalesce")


def _extreme(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    args = [bind(argument) for argument in (node.this, *node.expressions)]
    kinds = {arg.type.kind for arg in args if arg.type is not None}
    if len(args) < 2:
        raise SqlError(f"{node.key} takes at least 2 arguments", location=source.node(node))
    if Kind.STRING in kinds and len(kinds) > 1:
        raise TypeMismatch(f"{node.key} of a STRING and another type is not supported", location=source.node(node))
    return _variadic(source, node, args, node.key)


def _variadic(source: Source, node: exp.Expression, args: list[Expr], name: str) -> Expr:
    target, at = common(source, args), offset_of(node)
    if target is None:
        return Const(None, None, at)
    sides = tuple(coerce(source, arg, target) for arg in args)
    slots = ", ".join(f"{{{i}}}" for i in range(len(sides)))
    return fold(source, Call(name, sides, target, at, extra=f"{name}({slots})"))


def _nullif(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    return _null_if(source, bind(node.this), bind(node.expression))


def _null_if(source: Source, left: Expr, right: Expr) -> Expr:
    """NULL if both are equal, otherwise the left one."""
    target = compare_type(source, left, right)
    if target is None or left.type is None:
        return left
    sides = coerce(source, left, target), coerce(source, right, target)
    same = fold(source, Call("=", sides, BOOLEAN, left.at))
    return fold(source, Call("case", (same, Const(None, left.type, left.at), left), left.type, left.at))


def _nvl2(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    if node.args.get("false") is None:
        raise SqlError("nvl2 takes 3 arguments, got 2", location=source.node(node))
    value, yes, no = bind(node.this), bind(node.args["true"]), bind(node.args["false"])
    target = common(source, [yes, no])
    if target is None:
        return Const(None, None, value.at)
    missing = fold(source, Call("isnull", (value,), BOOLEAN, value.at))
    args = (missing, coerce(source, no, target), coerce(source, yes, target))
    return fold(source, Call("case", args, target, value.at))


def _as_text(source: Source, value: Expr) -> Expr:
    if value.type is None and isinstance(value, Const):
        return Const(None, STRING, value.at)
    return explicit_cast(source, value, STRING)


def _concat(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    nodes = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    args = [_as_text(source, bind(argument)) for argument in nodes]
    if not args:
        raise SqlError("concat takes at least 1 argument", location=source.node(node))
    slots = " || ".join(f"{{{i}}}" for i in range(len(args)))
    return fold(source, Call("concat", tuple(args), STRING, offset_of(node), extra=f"({slots})"))


def _concat_ws(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    args = [_as_text(source, bind(argument)) for argument in node.expressions]
    if not args:
        raise SqlError("concat_ws takes at least 1 argument", location=source.node(node))
    slots = ", ".join(f"{{{i}}}" for i in range(len(args)))
    sql = f"concat_ws({slots}, CAST(NULL AS VARCHAR))"
    return fold(source, Call("concat_ws", tuple(args), STRING, offset_of(node), extra=sql))


_AFFIXES: dict[type[exp.Expression], tuple[str, str]] = {
    exp.StartsWith: ("startswith", "starts_with"),
    exp.EndsWith: ("endswith", "suffix"),
}


def _affix(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """startswith, endswith and contains; with a constant they become LIKE, which an index can answer."""
    value, part = _as_text(source, bind(node.this)), _as_text(source, bind(node.expression))
    name, sql = _AFFIXES.get(type(node), ("contains", "contains"))
    if not isinstance(part, Const) or isinstance(value, Const):
        call = Call(name, (value, part), BOOLEAN, value.at, extra=f"{sql}({{0}}, {{1}})")
        return fold(source, call)
    if part.value is None:
        return Const(None, BOOLEAN, value.at)
    text = "".join(f"\\{character}" if character in "%_\\" else character for character in str(part.value))
    before = "" if isinstance(node, exp.StartsWith) else "%"
    after = "" if isinstance(node, exp.EndsWith) else "%"
    pattern = before + text + after if text else "%"
    return fold(source, Call("like", (value,), BOOLEAN, value.at, extra=pattern))


def _date(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """date(x), to_date(x) and to_date(x, pattern)."""
    value = bind(node.this)
    return read_by_pattern(source, node, value, DATE) if node.args.get("format") else explicit_cast(source, value, DATE)


def _timestamp(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """to_timestamp(x, pattern)."""
    return read_by_pattern(source, node, bind(node.this), TIMESTAMP)


def _zone(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """from_utc_timestamp and to_utc_timestamp; sqlglot casts other types to TIMESTAMP."""
    return shift_by_zone(source, node, bind(node.this))


def _date_add(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """date_add(x, days) and date_sub(x, days)."""
    day = bind(node.this)
    return arithmetic.combine(source, "+", explicit_cast(source, day, DATE), bind(node.expression))


def _nanvl(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """The second argument if the first is NaN."""
    args = [bind(node.this), bind(node.expression)]
    kinds = {arg.type.kind for arg in args if arg.type is not None}
    if kinds - NUMERIC:
        raise TypeMismatch("nanvl requires numbers", location=source.node(node))
    target = FLOAT if kinds == {Kind.FLOAT} else DOUBLE
    value, other = (coerce(source, arg, target) for arg in args)
    bad = fold(source, Call("isnan", (value,), BOOLEAN, value.at, extra="coalesce(isnan({0}), FALSE)"))
    return fold(source, Call("case", (bad, other, value), target, value.at))


def _is_null(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    (value,) = _exactly(source, node, bind, 1)
    return fold(source, Call("isnull", (value,), BOOLEAN, value.at))


def _is_not_null(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    missing = _is_null(source, node, bind)
    return fold(source, Call("not", (missing,), BOOLEAN, missing.at))


def _exactly(source: Source, node: exp.Expression, bind: Bind, count: int) -> list[Expr]:
    """The bound arguments of a call that sqlglot has no node for."""
    if len(node.expressions) != count:
        raise SqlError(f"{node.name} takes {count} arguments, got {len(node.expressions)}", location=source.node(node))
    return [bind(argument) for argument in node.expressions]


def _equal_null(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    return _same(source, bind(node.this), bind(node.expression))


def _same(source: Source, left: Expr, right: Expr) -> Expr:
    """`left <=> right`."""
    target = compare_type(source, left, right)
    if target is None:
        return Const(1, BOOLEAN, left.at)
    sides = coerce(source, left, target), coerce(source, right, target)
    return fold(source, Call("<=>", sides, BOOLEAN, left.at))


def _decode(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """decode(x, a, 1, b, 2, 3): CASE WHEN x <=> a THEN 1 WHEN x <=> b THEN 2 ELSE 3 END."""
    subject, *rest = [bind(argument) for argument in node.expressions]
    if len(rest) < 2:
        raise SqlError("decode takes at least 3 arguments", location=source.node(node))
    # Spark's default is a NULL of type STRING.
    otherwise: Expr = rest.pop() if len(rest) % 2 else Const(None, STRING, subject.at)
    target = common(source, [*rest[1::2], otherwise])
    if target is None:
        return Const(None, None, subject.at)
    args: list[Expr] = []
    for search, value in zip(rest[::2], rest[1::2], strict=True):
        args += [_same(source, subject, search), coerce(source, value, target)]
    return fold(source, Call("case", (*args, coerce(source, otherwise, target)), target, subject.at))


def _nullifzero(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    (value,) = _exactly(source, node, bind, 1)
    return _null_if(source, value, Const(0, INT, value.at))


def _zeroifnull(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    (value,) = _exactly(source, node, bind, 1)
    return _variadic(source, node, [value, Const(0, INT, value.at)], "coalesce")


def _negative(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    return arithmetic.negate(source, bind(node.this))


def _positive(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    (value,) = _exactly(source, node, bind, 1)
    if value.type is not None and value.type.kind not in NUMERIC:
        raise TypeMismatch(f"positive requires a number, got {type_name(value)}", location=source.location(value.at))
    return value


def _cast_to(target: Type) -> Rewrite:
    """A type's name as a function."""
    return lambda source, node, bind: explicit_cast(source, _exactly(source, node, bind, 1)[0], target)


_BITS: dict[type[exp.Expression], str] = {
    exp.BitwiseAnd: "({0} & {1})",
    exp.BitwiseOr: "({0} | {1})",
    exp.BitwiseXor: "xor({0}, {1})",
    exp.BitwiseNot: "(~ {0})",
}


def _bits(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """The operators `& | ^ ~`, in the wider of two integral types."""
    nodes = [node.this] if isinstance(node, exp.BitwiseNot) else [node.this, node.expression]
    args = [bind(argument) for argument in nodes]
    for arg in args:
        if arg.type is not None and arg.type.kind not in INTEGRAL:
            raise TypeMismatch(
                f"bitwise operators require integers, got {type_name(arg)}", location=source.location(arg.at)
            )
    target = common(source, args) or INT
    sides = tuple(coerce(source, arg, target) for arg in args)
    written = "{0} ^ {1}" if isinstance(node, exp.BitwiseXor) else _BITS[type(node)].strip("()")
    return fold(source, Call(node.key, sides, target, offset_of(node), _BITS[type(node)], written))


def _pmod(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """The remainder, which is not negative if the divisor is positive."""
    left, right = _exactly(source, node, bind, 2)
    rest = arithmetic.combine(source, "%", left, right)
    target = rest.type
    if target is None:
        return rest
    if target.kind is Kind.DECIMAL:
        raise Unsupported("pmod of DECIMAL is not supported", hint="use %", location=source.node(node))
    divisor = coerce(source, right, target)
    if target.kind in INTEGRAL:
        # Java's sum wraps around in 32 or 64 bits.
        half = 2**63 if target.kind is Kind.BIGINT else 2**31
        total = f"(((CAST({{0}} AS HUGEINT) + {{1}} + {half}) & CAST({2 * half - 1} AS HUGEINT)) - {half})"
    else:
        total = "({0} + {1})"
    sql = f"CASE WHEN {{0}} < 0 THEN {total} % {{1}} ELSE {{0}} END"
    return fold(source, Call("pmod", (rest, divisor), target, offset_of(node), extra=sql))


_TRIES: dict[type[exp.Expression], tuple[str, str]] = {
    exp.SafeDivide: ("try_divide", "/"),
    exp.SafeAdd: ("try_add", "+"),
    exp.SafeSubtract: ("try_subtract", "-"),
    exp.SafeMultiply: ("try_multiply", "*"),
}


def _try(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """try_add and the like: NULL if the operator would raise."""
    (name, op), args = _TRIES[type(node)], [bind(node.this), bind(node.expression)]
    kinds = {arg.type.kind for arg in args if arg.type is not None}
    if not kinds or kinds - INTEGRAL - FRACTIONAL:
        raise Unsupported(
            f"{name} requires integers, FLOAT or DOUBLE",
            hint="use CAST(… AS DOUBLE)",
            location=source.node(node),
        )
    target = DOUBLE if op == "/" else common(source, args)
    assert target is not None
    sides = tuple(coerce(source, arg, target) for arg in args)
    sql = f"({{0}} {op} {{1}})"
    if op == "/":
        sql = "CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END"
    elif target.kind in INTEGRAL:
        low, high = integer_range(target.kind)
        exact = f"(CAST({{0}} AS HUGEINT) {op} {{1}})"
        sql = f"CASE WHEN {exact} BETWEEN {low} AND {high} THEN {exact} END"
    return fold(source, Call(f"try {op}", sides, target, offset_of(node), extra=sql))


REWRITES: dict[type[exp.Expression], Rewrite] = {
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Nullif: _nullif,
    exp.Nvl2: _nvl2,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.ConcatWs: _concat_ws,
    exp.StartsWith: _affix,
    exp.EndsWith: _affix,
    exp.Contains: _affix,
    exp.TsOrDsToDate: _date,
    exp.StrToTime: _timestamp,
    exp.AtTimeZone: _zone,
    exp.FromTimeZone: _zone,
    exp.TsOrDsAdd: _date_add,
    exp.Nanvl: _nanvl,
    exp.EqualNull: _equal_null,
    exp.DecodeCase: _decode,
    exp.Negative: _negative,
    exp.SafeDivide: _try,
    exp.SafeAdd: _try,
    exp.SafeSubtract: _try,
    exp.SafeMultiply: _try,
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
    exp.BitwiseXor: _bits,
    exp.BitwiseNot: _bits,
}

BY_NAME: dict[str, Rewrite] = {
    "tinyint": _cast_to(TINYINT),
    "smallint": _cast_to(SMALLINT),
    "bigint": _cast_to(BIGINT),
    "decimal": _cast_to(Type(Kind.DECIMAL, 10, 0)),
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "nullifzero": _nullifzero,
    "zeroifnull": _zeroifnull,
    "positive": _positive,
    "pmod": _pmod,
}
