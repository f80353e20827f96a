"""Function calls. Supported are functions for which DuckDB was tested to agree with Spark.

Most are entries of the tables in `tureen.language.functions`. Functions that are equivalent to operators, or are
variadic, are in `tureen.language.binding.rewrites`.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tureen.aggregate_functions import AGGREGATE_NAMES
from tureen.errors import SqlError, TypeMismatch, Unsupported, nearest
from tureen.language.binding.binary import BINARY
from tureen.language.binding.coerce import a_type, coerce, fold
from tureen.language.binding.rewrites import BY_NAME, REWRITES, Bind
from tureen.language.binding.user_functions import bind_user_function
from tureen.language.functions.json import JSON
from tureen.language.functions.math import MATH
from tureen.language.functions.regexes import REGEXES
from tureen.language.functions.signatures import Function, Param, UnsupportedCall
from tureen.language.functions.text import TEXT
from tureen.language.functions.time import FIELDS, TIMES
from tureen.language.other_engines import FOREIGN_FUNCTIONS
from tureen.language.source import Source, offset_of
from tureen.language.text.argument_text import argument_text
from tureen.language.tree import STRING, Call, Const, Expr
from tureen.schema import Kind

FUNCTIONS: dict[str, Function] = MATH | TEXT | TIMES | REGEXES | JSON

# Other names of functions.
_ALIASES = {
    "signum": "sign", "power": "pow", "ceiling": "ceil", "len": "length", "char_length": "length",
    "character_length": "length", "ucase": "upper", "lcase": "lower", "substr": "substring", "char": "chr",
    "position": "locate", "btrim": "trim", "sha": "sha1", "dayofmonth": "day", "date_diff": "datediff",
    "to_unix_timestamp": "unix_timestamp", "rlike": "regexp_like", "regexp": "regexp_like",
}  # fmt: skip
# The names of functions whose nodes are rewritten.
_REWRITTEN = (
    "coalesce nvl ifnull nullif nvl2 if greatest least concat concat_ws date to_date to_timestamp date_add date_sub "
    "dateadd extract date_part datepart mod decode nanvl equal_null negative try_divide try_add try_subtract "
    "try_multiply like ilike div from_utc_timestamp to_utc_timestamp unhex "
    "unbase64"
)
_CASTS = "boolean int float double string timestamp"
NAMES = sorted({*FUNCTIONS, *_ALIASES, *BY_NAME, *_REWRITTEN.split(), *_CASTS.split()})

# sqlglot's node -> its arguments in Spark's order.
_ARGUMENTS: dict[type[exp.Expression], tuple[str, ...]] = {
    exp.Atan2: ("this", "expression"),
    exp.Log: ("this", "expression"),
    exp.Pow: ("this", "expression"),
    exp.Round: ("this", "decimals"),
    exp.BitwiseLeftShift: ("this", "expression"),
    exp.BitwiseRightShift: ("this", "expression"),
    exp.Substring: ("this", "start", "length"),
    exp.Left: ("this", "expression"),
    exp.Right: ("this", "expression"),
    exp.Repeat: ("this", "times"),
    exp.Pad: ("this", "expression", "fill_pattern"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.Translate: ("this", "from_", "to"),
    exp.SubstringIndex: ("this", "delimiter", "count"),
    exp.SplitPart: ("this", "delimiter", "part_index"),
    exp.StartsWith: ("this", "expression"),
    exp.EndsWith: ("this", "expression"),
    exp.Contains: ("this", "expression"),
    exp.SHA2: ("this", "length"),
    exp.Trim: ("this", "expression"),
    exp.DateDiff: ("this", "expression"),
    exp.AddMonths: ("this", "expression"),
    exp.MonthsBetween: ("this", "expression", "roundoff"),
    exp.TimestampFromParts: ("year", "month", "day", "hour", "min", "sec"),
    exp.RegexpLike: ("this", "expression"),
    exp.RegexpExtract: ("this", "expression", "group"),
    exp.RegexpReplace: ("this", "expression", "replacement"),
    exp.NextDay: ("this", "expression"),
}
# Nodes that do not keep the function's name: operators, and calls with keywords between arguments.
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.BitwiseLeftShift: "shiftleft",
    exp.BitwiseRightShift: "shiftright",
    exp.RegexpLike: "regexp_like",
    exp.Ceil: "ceil",
    exp.Floor: "floor",
    exp.Substring: "substring",
    exp.Initcap: "initcap",
    exp.Chr: "chr",
    exp.StrPosition: "locate",
}
# Arguments that sqlglot adds to a node, without effect on its meaning.
_FLAGS = frozenset({"safe", "coalesce", "ignore_nulls", "is_left", "charset", "null_if_pos_overflow"})
_ALSO: dict[type[exp.Expression], str] = {exp.Trim: "position", exp.Initcap: "expression"}
_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def bind_function(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """Bind a function call; the error for an unknown function suggests the nearest name, user functions included."""
    written = _written(source, node)
    if written is not None and written not in NAMES:
        function = source.functions(written)
        if function is None:
            raise _unknown(source, node)
        return bind_user_function(source, function, node, bind)
    rewrite = (REWRITES | BINARY).get(type(node))
    if isinstance(node, exp.Anonymous):
        rewrite = BY_NAME.get(written or "")
    if rewrite is not None:
        return rewrite(source, node, bind)
    name = _ALIASES.get(written or "", written or _OPERATORS.get(type(node), ""))
    if isinstance(node, exp.Trim):
        name = _TRIMS[str(node.args.get("position") or "BOTH").upper()]
    if isinstance(node, exp.Extract) or written in ("date_part", "datepart"):
        return _extract(source, node, bind)
    if isinstance(node, exp.Ln):
        name = "ln"
    elif isinstance(node, exp.DateDiff) and node.args.get("unit"):
        name = "timestampdiff"
    elif isinstance(node, exp.DateAdd | exp.TimestampAdd):
        name = "timestampadd"
    if name not in FUNCTIONS:
        raise _unknown(source, node)
    return _call(source, node, name, FUNCTIONS[name], _bound(source, node, name, bind))


def lower(source: Source, value: Expr) -> Expr:
    """The value in lower case, which ILIKE compares."""
    return fold(source, Call("lower", (value,), STRING, value.at, extra=TEXT["lower"].template((value,))))


def _bound(source: Source, node: exp.Expression, name: str, bind: Bind) -> list[Expr]:
    """The arguments of a call, bound, in Spark's order."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(source, node, bind)
    if isinstance(node, exp.Anonymous | exp.Chr):
        return [bind(argument) for argument in node.expressions]
    keys = _ARGUMENTS.get(type(node), ("this",))
    expected = {*keys, *_FLAGS, _ALSO.get(type(node))}
    if any(value for key, value in node.args.items() if key not in expected) or _has_delimiters(node):
        raise Unsupported(f"{name} is not supported with these arguments", location=source.node(node))
    # sqlglot wraps the DATE arguments of Spark's functions.
    args = [node.args[key] for key in keys if node.args.get(key) is not None]
    return _bind_present(bind, *map(_unwrapped, args))


def _bind_present(bind: Bind, *args: exp.Expression | None) -> list[Expr]:
    """Bind the arguments that are present; their number is checked later."""
    return [bind(argument) for argument in args if argument is not None]


def _has_delimiters(node: exp.Expression) -> bool:
    """Whether initcap has a delimiter argument, which Spark does not support."""
    return isinstance(node, exp.Initcap) and node.expression is not None and node.expression.name != " "


def _unwrapped(node: exp.Expression | None) -> exp.Expression | None:
    """An argument without the cast that sqlglot wraps around some."""
    if (isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe")) or isinstance(node, exp.TimeStrToTime):
        inner: exp.Expression | None = node.this
        return inner
    return node


def _logarithm(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:  # noqa: ARG001
    """log2 and log10, which sqlglot represents as a log with a base."""
    return _bind_present(bind, node.args.get("expression"))


def _locate(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:  # noqa: ARG001
    return _bind_present(bind, node.args.get("substr"), node.args.get("this"), node.args.get("position"))


def _instr(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:
    if node.args.get("position") or node.args.get("occurrence"):
        raise SqlError("instr takes 2 arguments", hint="use locate", location=source.node(node))
    return _bind_present(bind, node.args.get("this"), node.args.get("substr"))


def _formatted(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:
    """A call with a pattern or a path: the original text, because sqlglot rewrites it."""
    args = _bind_present(bind, _unwrapped(node.args.get("this")))
    pattern = argument_text(source, node, 1)
    if pattern is not None:
        args.append(Const(pattern, STRING, offset_of(node)))
    elif argument_text(source, node, 1, missing="") is None:
        parameter = "path" if isinstance(node, exp.JSONExtractScalar) else "pattern"
        raise Unsupported(
            f"the {parameter} must be a constant", hint="write it as a literal", location=source.node(node)
        )
    return args


def _unix_timestamp(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:
    if argument_text(source, node, 1, missing="") != "":
        raise Unsupported(
            "unix_timestamp requires one DATE or TIMESTAMP", hint="cast a STRING first", location=source.node(node)
        )
    return _bind_present(bind, node.args.get("this"))


def _truncated(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:
    """date_trunc and trunc: the original unit, because sqlglot rewrites it."""
    first = not isinstance(node, exp.DateTrunc)
    unit = argument_text(source, node, 0 if first else 1)
    if unit is None:
        raise Unsupported("the unit must be a constant", hint="such as 'HOUR'", location=source.node(node))
    args: list[Expr] = [Const(unit, STRING, offset_of(node)), *_bind_present(bind, _unwrapped(node.args.get("this")))]
    return args if first else args[::-1]


def _with_unit(source: Source, node: exp.Expression, bind: Bind) -> list[Expr]:  # noqa: ARG001
    unit = node.args.get("unit")
    args = _bind_present(bind, _unwrapped(node.args.get("expression")), _unwrapped(node.args.get("this")))
    return [Const(unit.name if unit is not None else "", STRING, offset_of(node)), *args]


_SPECIAL = {
    "log2": _logarithm, "log10": _logarithm, "locate": _locate, "instr": _instr, "date_format": _formatted,
    "from_unixtime": _formatted, "unix_timestamp": _unix_timestamp, "date_trunc": _truncated, "trunc": _truncated,
    "timestampadd": _with_unit, "timestampdiff": _with_unit, "get_json_object": _formatted,
}  # fmt: skip


def _extract(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """EXTRACT(field FROM time) and date_part('field', time)."""
    if isinstance(node, exp.Extract):
        field, time = node.name.upper(), node.expression
    else:
        if len(node.expressions) != 2 or not isinstance(node.expressions[0], exp.Literal):
            raise SqlError(
                "date_part requires a constant field and a time",
                hint="such as date_part('HOUR', ts)",
                location=source.node(node),
            )
        field, time = node.expressions[0].name.upper(), node.expressions[1]
    if field not in FIELDS:
        raise Unsupported(
            f"extract of '{field}' is not supported",
            hint=nearest(field, FIELDS) or f"fields are {', '.join(FIELDS)}",
            location=source.node(node),
        )
    call = _call(source, node, "extract", FIELDS[field], [bind(time)])
    return replace(call, written=f"extract({field} FROM {{0}})") if isinstance(call, Call) else call


def _call(source: Source, node: exp.Expression, name: str, function: Function, args: list[Expr]) -> Expr:
    at = offset_of(node)
    missing = len(function.params) - len(args)
    if missing < 0 or missing > len(function.defaults):
        counts = range(len(function.params) - len(function.defaults), len(function.params) + 1)
        accepted = " or ".join(map(str, counts))
        raise SqlError(
            f"{name} takes {accepted} argument{'s' * (accepted != '1')}, got {len(args)}", location=source.node(node)
        )
    args = [*args, *function.defaults[len(function.defaults) - missing :]]
    sides = tuple(_coerced(source, name, arg, param) for arg, param in zip(args, function.params, strict=True))
    try:
        call = Call(name, sides, function.type_of(sides), at, extra=function.template(sides))
    except UnsupportedCall as error:
        raise Unsupported(str(error), hint=error.hint, location=source.location(at)) from None
    return fold(source, call)


def _coerced(source: Source, name: str, arg: Expr, param: Param) -> Expr:
    target = param.target(arg)
    if target is None:
        if param.constant and not isinstance(arg, Const):
            hint = "the argument must be a constant"
        else:
            hint = f"it accepts {', '.join(kind for kind in Kind if kind in param.kinds)}; use CAST(… AS …)"
        raise TypeMismatch(f"{name} does not accept {a_type(arg)} here", hint=hint, location=source.location(arg.at))
    return coerce(source, arg, target)


def _written(source: Source, node: exp.Expression) -> str | None:
    """The function's name in the text, in lower case; None for an operator."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    raw = source.raw(node) if isinstance(node, exp.Func) else None
    return raw.lower() if raw and raw.isidentifier() else None


def _unknown(source: Source, node: exp.Expression) -> Unsupported:
    name = _written(source, node) or node.key.upper()
    if name.lower() in NAMES:
        return Unsupported(f"{name} is not supported with these arguments", location=source.node(node))
    construct = f"the function {name}" if isinstance(node, exp.Func) else f"'{name}'"
    return Unsupported(
        f"{construct} is not supported",
        hint=FOREIGN_FUNCTIONS.get(name.lower())
        or nearest(name, [*source.functions.names(), *NAMES, *AGGREGATE_NAMES])
        or "docs/language.md has the list of functions",
        location=source.node(node),
    )
