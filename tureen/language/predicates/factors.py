"""From the bound tree to predicates: NOT pushed to the leaves, so that only TRUE matters."""

from __future__ import annotations

from tureen.language.duckdb.render import render
from tureen.language.predicates.comparisons import FLIPPED, column_in, column_with_column, column_with_constant
from tureen.language.predicates.intervals import complement, domain_of, normal
from tureen.language.predicates.patterns import plain_prefix, prefix_interval
from tureen.language.tree import BOOLEAN, Call, Const, Expr, Ref, columns_in
from tureen.predicate import (
    EVERYTHING,
    NEVER,
    AllOf,
    AnyOf,
    Compare,
    Interval,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Within,
)
from tureen.schema import Schema

ALWAYS = AllOf()
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def holds(schema: Schema, expr: Expr) -> Predicate:
    """What is true where the condition is TRUE."""
    return _outcome(schema, expr, True)


def _outcome(schema: Schema, expr: Expr, wanted: bool) -> Predicate:
    """What is true where the condition is TRUE, or where it is FALSE."""
    if isinstance(expr, Const):
        return ALWAYS if expr.value is not None and bool(expr.value) is wanted else NEVER
    if isinstance(expr, Ref):
        return Within(expr.column.name, (Interval(int(wanted), int(wanted)),))
    assert isinstance(expr, Call)
    match expr.op:
        case "and" | "or":
            parts = tuple(_outcome(schema, one, wanted) for one in expr.args)
            return AllOf(parts) if (expr.op == "and") is wanted else AnyOf(parts)
        case "not":
            return _outcome(schema, expr.args[0], not wanted)
        case "istrue" | "isfalse":
            inner = _outcome(schema, expr.args[0], expr.op == "istrue")
            return inner if wanted else otherwise(schema, inner)
        case "isnull":
            return _is_null(schema, expr, wanted)
        case "<=>":
            return _null_safe(schema, expr, wanted)
        case "in":
            return _in(schema, expr, wanted)
        case "like":
            return _like(expr, wanted)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            op = expr.op if wanted else NEGATED[expr.op]
            return _compare(Call(op, expr.args, BOOLEAN, expr.at))
    return _opaque(expr, wanted)


def _opaque(expr: Expr, wanted: bool = True) -> Predicate:
    """A condition that only DuckDB can evaluate."""
    text = render(expr)
    return Opaque(text if wanted else f"(NOT {text})", columns_in(expr))


def otherwise(schema: Schema, predicate: Predicate) -> Predicate:
    """What is true where a predicate does not hold, be it FALSE or NULL."""
    match predicate:
        case AllOf(parts):
            return AnyOf(tuple(otherwise(schema, part) for part in parts))
        case AnyOf(parts):
            return AllOf(tuple(otherwise(schema, part) for part in parts))
        case IsNull(name):
            return Within(name, (EVERYTHING,))
        case Within(name, intervals):
            column = schema.find(name)
            assert column is not None
            rest = complement(domain_of(column.type), intervals)
            return AnyOf((IsNull(name), Within(name, rest)))
        case Like(name, pattern, escape, negated):
            return AnyOf((IsNull(name), Like(name, pattern, escape, not negated)))
        case Compare(left, op, right, offset, domain, limit):
            parts = (IsNull(left), IsNull(right), Compare(left, NEGATED[op], right, offset, domain, limit))
            return AnyOf(parts)
        case Opaque(sql, columns):
            return Opaque(f"({sql} IS NOT TRUE)", columns)


def _is_null(schema: Schema, call: Call, wanted: bool) -> Predicate:
    inner = call.args[0]
    if isinstance(inner, Ref):
        return IsNull(inner.column.name) if wanted else Within(inner.column.name, (EVERYTHING,))
    if inner.type == BOOLEAN and isinstance(inner, Call) and inner.op in ("and", "or", "not"):
        # It is NULL where it is neither TRUE nor FALSE.
        known = AnyOf((_outcome(schema, inner, True), _outcome(schema, inner, False)))
        return otherwise(schema, known) if wanted else known
    return _opaque(call, wanted)


def _null_safe(schema: Schema, call: Call, wanted: bool) -> Predicate:
    left, right = call.args
    if isinstance(left, Const):
        left, right = right, left
    if not isinstance(right, Const):
        return _opaque(call, wanted)
    if right.value is None:
        return _is_null(schema, Call("isnull", (left,), BOOLEAN, call.at), wanted)
    same = _compare(Call("=", (left, right), BOOLEAN, call.at))
    return same if wanted else otherwise(schema, same)


def _in(schema: Schema, call: Call, wanted: bool) -> Predicate:
    value, items = call.args[0], call.args[1:]
    keys = [one.value for one in items if isinstance(one, Const) and one.value is not None]
    if not wanted and len(keys) < len(items):
        return NEVER
    within = column_in(value, keys)
    if within is None:
        return _opaque(call, wanted)
    if wanted:
        return within
    column = schema.find(within.column)
    assert column is not None
    return Within(within.column, complement(domain_of(column.type), normal(domain_of(column.type), within.intervals)))


def _like(call: Call, wanted: bool) -> Predicate:
    value = call.args[0]
    if not isinstance(value, Ref):
        return _opaque(call, wanted)
    name, prefix = value.column.name, plain_prefix(call.extra)
    if prefix is None:
        return Like(name, call.extra, "\\", not wanted)
    text, open_ended = prefix
    found = (prefix_interval(text) if open_ended else Interval(text, text),)
    return Within(name, found if wanted else complement(domain_of(value.type), found))


def _compare(call: Call) -> Predicate:
    left, right = call.args
    found: Predicate | None
    if isinstance(right, Const):
        found = column_with_constant(call.op, left, right)
    elif isinstance(left, Const):
        found = column_with_constant(FLIPPED[call.op], right, left)
    else:
        found = column_with_column(call.op, left, right)
    return found if found is not None else _opaque(call)
