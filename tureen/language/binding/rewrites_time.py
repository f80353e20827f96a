"""Functions of times whose second argument is written out: a pattern to read by, or a time zone."""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import TypeMismatch, Unsupported
from tureen.language.binding.coerce import a_type, coerce, explicit_cast, fold
from tureen.language.functions.date_parsing import parse_sql
from tureen.language.functions.signatures import UnsupportedCall
from tureen.language.functions.zones import from_utc_sql, to_utc_sql
from tureen.language.source import Source, offset_of
from tureen.language.text.written import argument_text
from tureen.language.tree import DATE, STRING, TIMESTAMP, Call, Const, Expr
from tureen.language.types import is_time
from tureen.schema import Type


def read_by_pattern(source: Source, node: exp.Expression, value: Expr, target: Type) -> Expr:
    """to_date(x, pattern) and to_timestamp(x, pattern); of a time the pattern does not count."""
    if is_time(value.type):
        return explicit_cast(source, value, target)
    if value.type is None and isinstance(value, Const):
        return Const(None, target, value.at)
    if value.type != STRING:
        raise TypeMismatch(
            f"a pattern reads a STRING, not {a_type(value)}",
            hint="write CAST(… AS STRING)",
            place=source.place(value.at),
        )
    pattern = _written(source, node, "a pattern", "such as 'yyyy-MM-dd'")
    try:
        sql = parse_sql(pattern, dated=target == DATE)
    except UnsupportedCall as refused:
        raise Unsupported(str(refused), hint=refused.hint, place=source.node(node)) from None
    return fold(source, Call("read time", (value,), target, offset_of(node), extra=sql))


def shift_by_zone(source: Source, node: exp.Expression, value: Expr) -> Expr:
    """from_utc_timestamp(x, zone) and to_utc_timestamp(x, zone)."""
    if source.raw(node) is None:
        raise Unsupported("AT TIME ZONE is not supported", hint="use from_utc_timestamp", place=source.node(node))
    zone = _written(source, node, "a time zone", "such as 'Europe/Berlin'")
    try:
        sql = from_utc_sql(zone) if isinstance(node, exp.AtTimeZone) else to_utc_sql(zone)
    except UnsupportedCall as refused:
        raise Unsupported(str(refused), hint=refused.hint, place=source.node(node)) from None
    moment = coerce(source, value, TIMESTAMP)
    return fold(source, Call("zone", (moment,), TIMESTAMP, offset_of(node), extra=sql))


def _written(source: Source, node: exp.Expression, what: str, example: str) -> str:
    text = argument_text(source, node, 1)
    if text is None:
        raise Unsupported(f"{what} is a constant text", hint=f"write it out, {example}", place=source.node(node))
    return text
