"""From sqlglot's tree to the bound tree: names resolved, types known, Spark's casts written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from sqlglot import exp

from tureen.errors import SqlError, TypeMismatch, UnknownColumn, Unsupported, nearest
from tureen.language import arithmetic
from tureen.language.coerce import coerce, common, compare_type, explicit_cast, fold, type_name
from tureen.language.durations import interval_text
from tureen.language.functions import bind_function
from tureen.language.literals import read_number, read_string
from tureen.language.patterns import read_pattern
from tureen.language.source import Source, offset_of
from tureen.language.tree import BOOLEAN, STRING, Call, Const, Expr, Lapse, Ref
from tureen.schema import Kind, Schema, Type

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_NOT_HERE: dict[type[exp.Expression], tuple[str, str]] = {
    exp.Subquery: ("a subquery", "write the values out, or register a second query"),
    exp.Select: ("a subquery", "write the values out, or register a second query"),
    exp.Exists: ("EXISTS", "write the condition over the stream's own columns"),
    exp.Placeholder: ("a parameter", "write the value itself"),
    exp.Parameter: ("a parameter", "write the value itself"),
    exp.SessionParameter: ("a parameter", "write the value itself"),
    exp.RegexpLike: ("RLIKE", "use LIKE, where % stands for any text"),
    exp.ILike: ("ILIKE", "use lower(…) LIKE '…'"),
    exp.RegexpILike: ("a regular expression", "use LIKE"),
    exp.Window: ("OVER", "give the query a window with BEGIN … END …"),
    exp.CurrentTimestamp: ("the current time in WHERE", "use BEGIN NOW - … END NOW for a window"),
    exp.CurrentDate: ("the current date in WHERE", "use BEGIN NOW - … END NOW for a window"),
    exp.Star: ("* in WHERE", "name a column"),
    exp.Tuple: ("a row of values", "compare column by column, with AND"),
    exp.Bracket: ("an element in brackets", "compare whole columns"),
    exp.Lambda: ("a lambda function", "compare columns"),
}


@dataclass(frozen=True)
class Scope:
    """What names mean: the stream's columns, and the names that may stand before their dot."""

    source: Source
    schema: Schema
    names: tuple[str, ...]

    def column(self, node: exp.Column) -> Ref:
        """The column that a name means."""
        place = self.source.node(node)
        if node.args.get("db") or node.args.get("catalog"):
            raise UnknownColumn(f"'{node.sql('spark')}' has too many parts", place=place)
        if isinstance(node.this, exp.Star):
            raise SqlError("* cannot stand here", hint="name a column", place=place)
        self.check_table(node)
        column = self.schema.find(node.name)
        if column is None:
            raise UnknownColumn(
                f"no column '{node.name}'",
                hint=nearest(node.name, self.schema.names) or f"columns are {', '.join(self.schema.names)}",
                place=place,
            )
        return Ref(column, offset_of(node))

    def check_table(self, node: exp.Column) -> None:
        """Raise where what stands before the dot is not this query's stream."""
        if node.table and node.table.lower() not in {name.lower() for name in self.names}:
            raise UnknownColumn(
                f"'{node.table}' is not the stream of this query",
                hint=nearest(node.table, self.names) or f"write {self.names[0]}.{node.name}",
                place=self.source.node(node),
            )


def bind_condition(scope: Scope, node: exp.Expression) -> Expr:
    """The bound tree of a WHERE clause."""
    return _condition(scope, node, "WHERE")


def bind(scope: Scope, node: exp.Expression) -> Expr:
    """The bound tree of one expression."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(scope, node)
    if type(node) in _COMPARISONS:
        return compare(scope, _COMPARISONS[type(node)], bind(scope, node.this), bind(scope, node.expression))
    if type(node) in _ARITHMETIC:
        return _binary(scope, node)
    if type(node) in _NOT_HERE:
        what, instead = _NOT_HERE[type(node)]
        raise Unsupported(f"{what} is not supported", hint=instead, place=scope.source.node(node))
    if isinstance(node, exp.AggFunc):
        raise SqlError(
            f"{node.sql_name()} cannot stand in WHERE: it looks at many rows",
            hint="WHERE looks at one row; leave the aggregate out",
            place=scope.source.node(node),
        )
    return bind_function(scope.source, node, lambda one: bind(scope, one))


def compare(scope: Scope, op: str, left: Expr, right: Expr) -> Expr:
    """A comparison, with both sides in the type that Spark compares them in."""
    at = min(left.at, right.at)
    if isinstance(left, Lapse) or isinstance(right, Lapse):
        lapse = left if isinstance(left, Lapse) else right
        raise Unsupported(
            "comparing intervals is not supported",
            hint="write it as a sum, such as a < b + INTERVAL '5' MINUTE",
            place=scope.source.place(lapse.at),
        )
    target = compare_type(scope.source, left, right)
    if target is None:
        return Const(1 if op == "<=>" else None, BOOLEAN, at)
    sides = coerce(scope.source, left, target), coerce(scope.source, right, target)
    return fold(scope.source, Call(op, sides, BOOLEAN, at))


def _condition(scope: Scope, node: exp.Expression, where: str) -> Expr:
    bound = bind(scope, node)
    if bound.type is None and isinstance(bound, Const):
        return Const(None, BOOLEAN, bound.at)
    if bound.type != BOOLEAN:
        raise TypeMismatch(
            f"{where} needs a condition, not a {type_name(bound)}",
            hint="compare it with something",
            place=scope.source.place(bound.at),
        )
    return bound


def _logic(scope: Scope, node: exp.Expression) -> Expr:
    word = "AND" if isinstance(node, exp.And) else "OR"
    parts = tuple(_condition(scope, one, word) for one in _flatten(node))
    return Call(word.lower(), parts, BOOLEAN, min(part.at for part in parts))


def _flatten(node: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of the same connector, without recursion: chains may be long."""
    found: list[exp.Expression] = []
    todo = [node]
    while todo:
        one = todo.pop()
        if type(one) is type(node):
            todo += [one.expression, one.this]
        else:
            found.append(one)
    return found


def _not(scope: Scope, node: exp.Expression) -> Expr:
    inner = _condition(scope, node.this, "NOT")
    return Call("not", (inner,), BOOLEAN, inner.at)


def _between(scope: Scope, node: exp.Expression) -> Expr:
    if node.args.get("symmetric"):
        raise Unsupported("BETWEEN SYMMETRIC is not supported", place=scope.source.node(node))
    value = bind(scope, node.this)
    low = compare(scope, ">=", value, bind(scope, node.args["low"]))
    high = compare(scope, "<=", value, bind(scope, node.args["high"]))
    return Call("and", (low, high), BOOLEAN, value.at)


def _in(scope: Scope, node: exp.Expression) -> Expr:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise Unsupported(
            "IN takes a list of values",
            hint="write the values out: IN (1, 2, 3)",
            place=scope.source.node(node),
        )
    value = bind(scope, node.this)
    items = [bind(scope, one) for one in node.expressions]
    if not items:
        raise SqlError("the list of IN is empty", place=scope.source.node(node))
    target = common(scope.source, [value, *items])
    if target is None:
        return Const(None, BOOLEAN, value.at)
    every = [coerce(scope.source, one, target) for one in (value, *items)]
    if all(isinstance(one, Const) for one in every[1:]):
        return fold(scope.source, Call("in", tuple(every), BOOLEAN, value.at))
    parts = tuple(fold(scope.source, Call("=", (every[0], one), BOOLEAN, value.at)) for one in every[1:])
    return Call("or", parts, BOOLEAN, value.at)


def _is(scope: Scope, node: exp.Expression) -> Expr:
    value = bind(scope, node.this)
    what = node.expression
    if isinstance(what, exp.Null):
        return fold(scope.source, Call("isnull", (value,), BOOLEAN, value.at))
    if isinstance(what, exp.Boolean):
        side = _condition(scope, node.this, "IS TRUE") if value.type != BOOLEAN else value
        return fold(scope.source, Call("istrue" if what.this else "isfalse", (side,), BOOLEAN, value.at))
    raise Unsupported(
        "IS takes NULL, TRUE or FALSE", hint="use <=> to compare with NULLs", place=scope.source.node(node)
    )


def _distinct(scope: Scope, node: exp.Expression) -> Expr:
    same = compare(scope, "<=>", bind(scope, node.this), bind(scope, node.expression))
    return Call("not", (same,), BOOLEAN, same.at)


def _like(scope: Scope, node: exp.Expression) -> Expr:
    escape: str | None = None
    if isinstance(node, exp.Escape):
        mark = bind(scope, node.expression)
        node = node.this
        if not isinstance(mark, Const) or not isinstance(mark.value, str) or len(mark.value) != 1:
            raise SqlError("ESCAPE takes one character", place=scope.source.place(mark.at))
        escape = mark.value
    if not isinstance(node, exp.Like) or isinstance(node.expression, exp.Any | exp.All):
        raise Unsupported(
            "only LIKE with one pattern is supported", hint="join several with OR", place=scope.source.node(node)
        )
    value, pattern = bind(scope, node.this), bind(scope, node.expression)
    if not isinstance(pattern, Const):
        raise Unsupported(
            "a pattern of LIKE is a constant", hint="write it out", place=scope.source.place(pattern.at)
        )
    if value.type is None or pattern.value is None:
        return Const(None, BOOLEAN, value.at)
    if value.type != STRING or not isinstance(pattern.value, str):
        wrong = value if value.type != STRING else pattern
        raise TypeMismatch(
            f"LIKE is over STRING, not {type_name(wrong)}",
            hint="write CAST(… AS STRING)",
            place=scope.source.place(wrong.at),
        )
    text = read_pattern(scope.source, pattern.value, escape or "\\", pattern.at)
    return fold(scope.source, Call("like", (value,), BOOLEAN, value.at, extra=text))


def _neg(scope: Scope, node: exp.Expression) -> Expr:
    inner = node.this
    literal = inner.this if isinstance(inner, exp.TryCast) else inner
    # The sign belongs to the literal: -2147483648 is an INT, though 2147483648 is not.
    if isinstance(literal, exp.Literal) and (number := _number(scope, inner, negative=True)) is not None:
        return number
    return arithmetic.negate(scope.source, bind(scope, inner))


def _number(scope: Scope, node: exp.Expression, negative: bool = False) -> Const | None:
    """The number literal that a node is; sqlglot makes a cast of a literal with a suffix."""
    if isinstance(node, exp.TryCast):
        inner = node.this
        if not isinstance(inner, exp.Literal):
            return None
        at = offset_of(inner)
        raw = scope.source.raw(inner)
        if inner.is_string:
            # The suffix BD alone loses its place; the digits are still there.
            return None if raw else read_number(scope.source, f"{inner.name}BD", at, negative)
        suffixed = raw is not None and raw[-1:].isalpha()
        return read_number(scope.source, raw or inner.name, at, negative) if suffixed else None
    if isinstance(node, exp.Literal) and not node.is_string:
        raw = scope.source.raw(node)
        return read_number(scope.source, raw if raw and raw[0] in ".0123456789" else node.name, offset_of(node), negative)
    return None


def _literal(scope: Scope, node: exp.Expression) -> Expr:
    number = _number(scope, node)
    if number is not None:
        return number
    raw = scope.source.raw(node)
    if raw is None or raw[-1:] not in ("'", '"') or len(raw) < 2:
        return Const(node.name, STRING, offset_of(node))
    return read_string(scope.source, raw, offset_of(node))


def _null(scope: Scope, node: exp.Expression) -> Expr:
    return Const(None, None, offset_of(node))


def _boolean(scope: Scope, node: exp.Expression) -> Expr:
    return Const(int(bool(node.this)), BOOLEAN, offset_of(node))


def _column(scope: Scope, node: exp.Expression) -> Expr:
    return scope.column(cast(exp.Column, node))


def _paren(scope: Scope, node: exp.Expression) -> Expr:
    return bind(scope, node.this)


def _binary(scope: Scope, node: exp.Expression) -> Expr:
    left, right = bind(scope, node.this), bind(scope, node.expression)
    return arithmetic.combine(scope.source, _ARITHMETIC[type(node)], left, right)


def _interval(scope: Scope, node: exp.Expression) -> Expr:
    value, unit = node.this, node.args.get("unit")
    at = offset_of(node)
    negative = isinstance(value, exp.Neg)
    value = value.this if negative else value
    if not isinstance(value, exp.Literal):
        raise Unsupported("an interval is a constant", hint="such as INTERVAL '5' MINUTE", place=scope.source.place(at))
    first, to = unit, None
    if isinstance(unit, exp.IntervalSpan):
        first, to = unit.this, unit.expression
    duration = interval_text(
        scope.source, value.name, first.name if first is not None else None, to.name if to is not None else None, at
    )
    duration = -duration if negative else duration
    if duration.months and duration.micros:
        raise Unsupported(
            "an interval of months and of days", hint="add them one by one", place=scope.source.place(at)
        )
    return Lapse(duration.months, duration.micros, at)


def _cast(scope: Scope, node: exp.Expression) -> Expr:
    number = _number(scope, node)
    if number is not None:
        return number
    text = node.args["to"].sql("spark")
    try:
        target = Type.parse(text)
    except Exception:
        raise Unsupported(
            f"the type {text} is not supported",
            hint=f"types are {', '.join(Kind)}",
            place=scope.source.node(node),
        ) from None
    return explicit_cast(scope.source, bind(scope, node.this), target)


def _if(scope: Scope, node: exp.Expression) -> Expr:
    return _branches(scope, node, [node])


def _case(scope: Scope, node: exp.Expression) -> Expr:
    return _branches(scope, node, node.args["ifs"])


def _branches(scope: Scope, node: exp.Expression, ifs: list[Any]) -> Expr:
    """CASE and IF: conditions and values in turn, then the value otherwise."""
    subject = bind(scope, node.this) if isinstance(node, exp.Case) and node.this else None
    conditions: list[Expr] = []
    values: list[Expr] = []
    for one in ifs:
        if subject is None:
            conditions.append(_condition(scope, one.this, "WHEN"))
        else:
            conditions.append(compare(scope, "=", subject, bind(scope, one.this)))
        values.append(bind(scope, one.args["true"]))
    otherwise = node.args.get("false") or node.args.get("default")
    values.append(bind(scope, otherwise) if otherwise is not None else Const(None, None, offset_of(node)))
    target = common(scope.source, values)
    at = offset_of(node)
    if target is None:
        return Const(None, None, at)
    values = [coerce(scope.source, one, target) for one in values]
    args = [one for pair in zip(conditions, values, strict=False) for one in pair]
    return fold(scope.source, Call("case", (*args, values[-1]), target, at))


_Handler = Callable[[Scope, exp.Expression], Expr]
_HANDLERS: dict[type[exp.Expression], _Handler] = {
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.NullSafeNEQ: _distinct,
    exp.Like: _like,
    exp.Escape: _like,
    exp.Neg: _neg,
    exp.Literal: _literal,
    exp.RawString: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Column: _column,
    exp.Paren: _paren,
    exp.Interval: _interval,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.If: _if,
    exp.Case: _case,
}
