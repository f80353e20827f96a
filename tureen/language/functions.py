"""The functions that a condition may call: those on which DuckDB was tried and agrees with Spark.

A function is a row of `FUNCTIONS`: what its arguments must be, what it gives, and its DuckDB SQL. Those that are
only another spelling of an operator are in `tureen.language.rewrites`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, Unsupported, nearest
from tureen.language.casing import LOWER, UPPER
from tureen.language.coerce import coerce, fold, type_name
from tureen.language.rewrites import REWRITES, Bind
from tureen.language.source import Source, offset_of
from tureen.language.tree import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Call, Const, Expr
from tureen.schema import NUMERIC, Kind, Type


@dataclass(frozen=True, slots=True)
class Function:
    """One function: the types its arguments are brought to, its result, and its SQL."""

    params: tuple[Callable[[Expr], Type | None], ...]
    result: Callable[[Type], Type]
    sql: str


def _only(*kinds: Kind) -> Callable[[Expr], Type | None]:
    """A parameter of one of some kinds, taken as it is."""
    return lambda expr: expr.type if expr.type is not None and expr.type.kind in kinds else None


def _cast_to(target: Type, *kinds: Kind) -> Callable[[Expr], Type | None]:
    """A parameter of one of some kinds, brought to a type."""
    return lambda expr: target if expr.type is not None and expr.type.kind in kinds else None


def _whole_number(least: int) -> Callable[[Expr], Type | None]:
    """A constant whole number; where the others start Spark and DuckDB count differently."""

    def param(expr: Expr) -> Type | None:
        ok = isinstance(expr, Const) and expr.type == INT and isinstance(expr.value, int) and expr.value >= least
        return INT if ok else None

    return param


_string = _only(Kind.STRING)
_double = _cast_to(DOUBLE, *NUMERIC)
_date = _cast_to(DATE, Kind.DATE, Kind.TIMESTAMP)
_timestamp = _cast_to(TIMESTAMP, Kind.DATE, Kind.TIMESTAMP)


def _gives(one: Type) -> Callable[[Type], Type]:
    return lambda _: one


def _whole_decimal(one: Type) -> Type:
    return Type(Kind.DECIMAL, min(38, one.precision - one.scale + 1), 0) if one.scale else one


FUNCTIONS: dict[str, Function] = {
    "abs": Function((_only(*NUMERIC),), lambda one: one, "abs({0})"),
    "sqrt": Function((_double,), _gives(DOUBLE), "sqrt({0})"),
    "isnan": Function((_double,), _gives(BOOLEAN), "coalesce(isnan({0}), FALSE)"),
    "ceil": Function((_double,), _gives(BIGINT), "ceil({0})"),
    "floor": Function((_double,), _gives(BIGINT), "floor({0})"),
    "length": Function((_string,), _gives(INT), "length({0})"),
    "upper": Function((_string,), _gives(STRING), UPPER),
    "lower": Function((_string,), _gives(STRING), LOWER),
    "trim": Function((_string,), _gives(STRING), "trim({0}, ' ')"),
    "ltrim": Function((_string,), _gives(STRING), "ltrim({0}, ' ')"),
    "rtrim": Function((_string,), _gives(STRING), "rtrim({0}, ' ')"),
    "substring": Function((_string, _whole_number(1), _whole_number(0)), _gives(STRING), "substring({0}, {1}, {2})"),
    "left": Function((_string, _whole_number(0)), _gives(STRING), "left({0}, {1})"),
    "right": Function((_string, _whole_number(0)), _gives(STRING), "right({0}, {1})"),
    "instr": Function((_string, _string), _gives(INT), "instr({0}, {1})"),
    "replace": Function((_string, _string, _string), _gives(STRING), "replace({0}, {1}, {2})"),
    "year": Function((_date,), _gives(INT), "year({0})"),
    "quarter": Function((_date,), _gives(INT), "quarter({0})"),
    "month": Function((_date,), _gives(INT), "month({0})"),
    "day": Function((_date,), _gives(INT), "day({0})"),
    "dayofweek": Function((_date,), _gives(INT), "dayofweek({0}) + 1"),
    "dayofyear": Function((_date,), _gives(INT), "dayofyear({0})"),
    "weekofyear": Function((_date,), _gives(INT), "weekofyear({0})"),
    "hour": Function((_timestamp,), _gives(INT), "hour({0})"),
    "minute": Function((_timestamp,), _gives(INT), "minute({0})"),
    "second": Function((_timestamp,), _gives(INT), "second({0})"),
    "datediff": Function((_date, _date), _gives(INT), "({0} - {1})"),
}

# sqlglot's node -> the name here and the arguments in order.
_NODES: dict[type[exp.Expression], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.IsNan: ("isnan", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.StrPosition: ("instr", ("this", "substr")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Year: ("year", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.WeekOfYear: ("weekofyear", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
    exp.DateDiff: ("datediff", ("this", "expression")),
}
_FLAGS = frozenset({"safe", "coalesce", "ignore_nulls", "zone"})
_EXTRACTS = frozenset({"year", "quarter", "month", "day", "dayofyear", "hour", "minute"})
NAMES = sorted({*FUNCTIONS, "coalesce", "nullif", "if", "greatest", "least", "concat", "startswith", "endswith"})


def bind_function(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """A function call over bound arguments, or an error that names the nearest function."""
    rewrite = REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(source, node, bind)
    if isinstance(node, exp.Trim):
        position = str(node.args.get("position") or "BOTH").upper()
        name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
        return _call(source, node, name, _taken(source, node, ("this",), ("position",)), bind)
    if isinstance(node, exp.Extract) and node.name.lower() in _EXTRACTS:
        return _call(source, node, node.name.lower(), [node.expression], bind)
    if isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS:
        return _call(source, node, node.name.lower(), node.expressions, bind)
    if type(node) not in _NODES:
        raise _unknown(source, node)
    name, keys = _NODES[type(node)]
    return _call(source, node, name, _taken(source, node, keys), bind)


def _taken(
    source: Source, node: exp.Expression, keys: tuple[str, ...], flags: tuple[str, ...] = ()
) -> list[exp.Expression]:
    """The arguments of a call, if it has no others."""
    extra = [key for key, value in node.args.items() if value and key not in (*keys, *flags, *_FLAGS)]
    if extra:
        raise Unsupported(f"{_written(source, node)} is not supported with these arguments", place=source.node(node))
    # Where Spark's function takes a DATE, sqlglot wraps the argument.
    args = [node.args[key] for key in keys if node.args.get(key) is not None]
    return [one.this if isinstance(one, exp.TsOrDsToDate) and not one.args.get("safe") else one for one in args]


def _call(source: Source, node: exp.Expression, name: str, nodes: list[exp.Expression], bind: Bind) -> Expr:
    function, at = FUNCTIONS[name], offset_of(node)
    args = [bind(one) for one in nodes]
    if name == "substring" and len(args) == 2:
        args.append(Const(2**31 - 1, INT, at))
    if len(args) != len(function.params):
        raise SqlError(f"{name} takes {len(function.params)} arguments, not {len(args)}", place=source.node(node))
    if name in ("ceil", "floor") and args[0].type is not None and args[0].type.kind in (Kind.BIGINT, Kind.DECIMAL):
        return _whole(source, name, args[0], at)
    types: list[Type] = []
    for arg, param in zip(args, function.params, strict=True):
        target = param(arg) if arg.type is not None or not isinstance(arg, Const) else None
        if target is None:
            raise TypeMismatch(
                f"{name} does not take a {type_name(arg)} here",
                hint="a whole number that is written out"
                if isinstance(arg.type, Type) and arg.type.kind is Kind.INT
                else "write CAST(… AS …) around it",
                place=source.place(arg.at),
            )
        types.append(target)
    sides = tuple(coerce(source, arg, one) for arg, one in zip(args, types, strict=True))
    return fold(source, Call(name, sides, function.result(types[0]), at, extra=function.sql))


def _whole(source: Source, name: str, arg: Expr, at: int) -> Expr:
    """Ceil and floor of a BIGINT, which is itself, and of a DECIMAL, which is a DECIMAL."""
    assert arg.type is not None
    if arg.type.kind is Kind.BIGINT:
        return arg
    return fold(source, Call(name, (arg,), _whole_decimal(arg.type), at, extra=name + "({0})"))


def _written(source: Source, node: exp.Expression) -> str:
    """The function's name as it was written, if its place is known."""
    raw = source.raw(node)
    return raw if raw and raw.isidentifier() else node.name if isinstance(node, exp.Anonymous) else node.key.upper()


def _unknown(source: Source, node: exp.Expression) -> Unsupported:
    name = _written(source, node)
    what = f"the function {name}" if isinstance(node, exp.Func) else f"'{name}'"
    return Unsupported(
        f"{what} is not supported",
        hint=nearest(name, NAMES) or f"functions are {', '.join(NAMES)}",
        place=source.node(node),
    )
