"""Time functions whose second argument must be a constant: a pattern, or a time zone."""

from __future__ import annotations

from sqlglot import exp

from tureen.errors import TypeMismatch, Unsupported
from tureen.language.binding.coerce import a_type, coerce, explicit_cast, fold
from tureen.language.functions.date_parsing import parse_sql
from tureen.language.functions.signatures import UnsupportedCall
from tureen.language.functions.zones import from_utc_sql, to_utc_sql
from tureen.language.source import Source, offset_of
from tureen.language.spelling import sql_literal
from tureen.language.text.argument_text import argument_text
from tureen.language.tree import DATE, STRING, TIMESTAMP, Call, Const, Expr
from tureen.language.types import is_time
from tureen.schema import Type


def read_by_pattern(source: Source, node: exp.Expression, value: Expr, target: Type) -> Expr:
    """to_date(x, pattern) and to_timestamp(x, pattern); for a DATE or TIMESTAMP the pattern is ignored."""
    if is_time(value.type):
        return explicit_cast(source, value, target)
    if value.type is None and isinstance(value, Const):
        return Const(None, target, value.at)
    if value.type != STRING:
        raise TypeMismatch(
            f"a pattern requires a STRING, got {a_type(value)}",
            hint="write CAST(… AS STRING)",
            location=source.location(value.at),
        )
    pattern = _constant_text(source, node, "the pattern", "such as 'yyyy-MM-dd'")
    try:
        sql = parse_sql(pattern, dated=target == DATE)
    except UnsupportedCall as error:
        raise Unsupported(str(error), hint=error.hint, location=source.node(node)) from None
    written = f"to_{target.sql.lower()}({{0}}, {_literal(pattern)})"
    return fold(source, Call("read time", (value,), target, offset_of(node), sql, written))


def shift_by_zone(source: Source, node: exp.Expression, value: Expr) -> Expr:
    """from_utc_timestamp(x, zone) and to_utc_timestamp(x, zone)."""
    if source.raw(node) is None:
        raise Unsupported("AT TIME ZONE is not supported", hint="use from_utc_timestamp", location=source.node(node))
    zone = _constant_text(source, node, "the time zone", "such as 'Europe/Berlin'")
    try:
        sql = from_utc_sql(zone) if isinstance(node, exp.AtTimeZone) else to_utc_sql(zone)
    except UnsupportedCall as error:
        raise Unsupported(str(error), hint=error.hint, location=source.node(node)) from None
    timestamp = coerce(source, value, TIMESTAMP)
    name = "from_utc_timestamp" if isinstance(node, exp.AtTimeZone) else "to_utc_timestamp"
    written = f"{name}({{0}}, {_literal(zone)})"
    return fold(source, Call("zone", (timestamp,), TIMESTAMP, offset_of(node), sql, written))


def _literal(text: str) -> str:
    """A text as a literal within a template."""
    return sql_literal(text, STRING).replace("{", "{{").replace("}", "}}")


def _constant_text(source: Source, node: exp.Expression, parameter: str, example: str) -> str:
    text = argument_text(source, node, 1)
    if text is None:
        raise Unsupported(
            f"{parameter} must be a constant", hint=f"write a literal, {example}", location=source.node(node)
        )
    return text
