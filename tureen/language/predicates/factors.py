"""Predicates from bound conditions: NOT is pushed to the leaves, so that only TRUE matters."""

from __future__ import annotations

from tureen.functions.function_calls import definitions_in
from tureen.language.duckdb.render import render
from tureen.language.expression_text import expression_text
from tureen.language.predicates.comparisons import column_in, column_with_column, column_with_constant
from tureen.language.predicates.intervals import complement, domain_of, normal
from tureen.language.predicates.patterns import plain_prefix, prefix_interval
from tureen.language.tree import BOOLEAN, Call, Const, Expr, Ref, columns_in
from tureen.predicate import (
    EVERYTHING,
    FLIPPED,
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
    """The predicate that holds where a condition is TRUE."""
    return _outcome(schema, expr, True)


def _outcome(schema: Schema, expr: Expr, truth: bool) -> Predicate:
    """The predicate that holds where a condition has a truth value, TRUE or FALSE."""
    if isinstance(expr, Const):
        return ALWAYS if expr.value is not None and bool(expr.value) is truth else NEVER
    if isinstance(expr, Ref):
        return Within(expr.column.name, (Interval(int(truth), int(truth)),))
    assert isinstance(expr, Call)
    match expr.op:
        case "and" | "or":
            parts = tuple(_outcome(schema, arg, truth) for arg in expr.args)
            return AllOf(parts) if (expr.op == "and") is truth else AnyOf(parts)
        case "not":
            return _outcome(schema, expr.args[0], not truth)
        case "istrue" | "isfalse":
            inner = _outcome(schema, expr.args[0], expr.op == "istrue")
            return inner if truth else otherwise(schema, inner)
        case "isnull":
            return _is_null(schema, expr, truth)
        case "<=>":
            return _null_safe(schema, expr, truth)
        case "in":
            return _in(schema, expr, truth)
        case "like":
            return _like(expr, truth)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            op = expr.op if truth else NEGATED[expr.op]
            return _compare(Call(op, expr.args, BOOLEAN, expr.at))
    return _opaque(expr, truth)


def _opaque(expr: Expr, truth: bool = True) -> Predicate:
    """A condition that only DuckDB can evaluate."""
    sql, text = render(expr), expression_text(expr)
    if not truth:
        sql, text = f"(NOT {sql})", f"NOT ({text})"
    return Opaque(sql, columns_in(expr), definitions_in(sql), text)


def otherwise(schema: Schema, predicate: Predicate) -> Predicate:
    """The predicate that holds where another does not, be it FALSE or NULL."""
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
        case Opaque(sql, columns, functions, text):
            return Opaque(f"({sql} IS NOT TRUE)", columns, functions, f"({text}) IS NOT TRUE")


def _is_null(schema: Schema, call: Call, truth: bool) -> Predicate:
    inner = call.args[0]
    if isinstance(inner, Ref):
        return IsNull(inner.column.name) if truth else Within(inner.column.name, (EVERYTHING,))
    if inner.type == BOOLEAN and isinstance(inner, Call) and inner.op in ("and", "or", "not"):
        # It is NULL where it is neither TRUE nor FALSE.
        not_null = AnyOf((_outcome(schema, inner, True), _outcome(schema, inner, False)))
        return otherwise(schema, not_null) if truth else not_null
    return _opaque(call, truth)


def _null_safe(schema: Schema, call: Call, truth: bool) -> Predicate:
    left, right = call.args
    if isinstance(left, Const):
        left, right = right, left
    if not isinstance(right, Const):
        return _opaque(call, truth)
    if right.value is None:
        return _is_null(schema, Call("isnull", (left,), BOOLEAN, call.at), truth)
    same = _compare(Call("=", (left, right), BOOLEAN, call.at))
    return same if truth else otherwise(schema, same)


def _in(schema: Schema, call: Call, truth: bool) -> Predicate:
    value, items = call.args[0], call.args[1:]
    keys = [item.value for item in items if isinstance(item, Const) and item.value is not None]
    if not truth and len(keys) < len(items):
        return NEVER
    within = column_in(value, keys)
    if within is None:
        return _opaque(call, truth)
    if truth:
        return within
    column = schema.find(within.column)
    assert column is not None
    return Within(within.column, complement(domain_of(column.type), normal(domain_of(column.type), within.intervals)))


def _like(call: Call, truth: bool) -> Predicate:
    value = call.args[0]
    if not isinstance(value, Ref):
        return _opaque(call, truth)
    name, prefix = value.column.name, plain_prefix(call.extra)
    if prefix is None:
        return Like(name, call.extra, "\\", not truth)
    text, open_ended = prefix
    intervals = (prefix_interval(text) if open_ended else Interval(text, text),)
    return Within(name, intervals if truth else complement(domain_of(value.type), intervals))


def _compare(call: Call) -> Predicate:
    left, right = call.args
    predicate: Predicate | None
    if isinstance(right, Const):
        predicate = column_with_constant(call.op, left, right)
    elif isinstance(left, Const):
        predicate = column_with_constant(FLIPPED[call.op], right, left)
    else:
        predicate = column_with_column(call.op, left, right)
    return predicate if predicate is not None else _opaque(call)
