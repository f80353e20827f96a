"""unhex and unbase64, where their result is converted to STRING at once: there is no BINARY type."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import TypeMismatch, Unsupported
from tureen.language.binding.coerce import a_type, fold
from tureen.language.source import Source, offset_of
from tureen.language.tree import STRING, Call, Const, Expr

Bind = Callable[[exp.Expression], Expr]

_HEX = "CASE WHEN regexp_full_match({0}, '[0-9A-Fa-f]*') THEN decode(unhex({0})) END"
# Java ignores characters that are not base64, and does not require padding.
_LETTERS = "regexp_replace({0}, '[^A-Za-z0-9+/]', '', 'g')"
_BASE64 = f"decode(from_base64({_LETTERS} || repeat('=', CAST((4 - length({_LETTERS}) % 4) % 4 AS INTEGER))))"
_FORMS: dict[type[exp.Expression], str] = {exp.Unhex: _HEX, exp.FromBase64: _BASE64}


def is_bytes(node: exp.Expression) -> bool:
    """Whether a node returns BINARY."""
    return type(node) in _FORMS


def text_of_bytes(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """The STRING whose UTF-8 bytes unhex or unbase64 returns; fails for bytes that are not UTF-8."""
    value = bind(node.this)
    if value.type is None and isinstance(value, Const):
        return Const(None, STRING, value.at)
    if value.type != STRING:
        raise TypeMismatch(
            f"{source.raw(node) or node.key} requires a STRING, got {a_type(value)}", location=source.location(value.at)
        )
    written = f"CAST({'unhex' if isinstance(node, exp.Unhex) else 'unbase64'}({{0}}) AS STRING)"
    return fold(source, Call("bytes", (value,), STRING, offset_of(node), _FORMS[type(node)], written))


def decode(source: Source, node: exp.Expression, bind: Bind) -> Expr:
    """The STRING of bytes in UTF-8."""
    charset = node.args.get("charset")
    if not is_bytes(node.this) or not isinstance(charset, exp.Literal) or charset.name.upper() != "UTF-8":
        raise Unsupported(
            "decode is not supported with these arguments",
            hint="write decode(unhex(x), 'UTF-8'), or decode(x, search, result, …)",
            location=source.node(node),
        )
    return text_of_bytes(source, node.this, bind)


def bytes_alone(source: Source, node: exp.Expression, bind: Bind) -> Expr:  # noqa: ARG001
    """Raise: BINARY values are not supported."""
    raise Unsupported(
        f"{source.raw(node)} returns BINARY, which is not supported",
        hint="write CAST(… AS STRING) around it",
        location=source.node(node),
    )


BINARY: dict[type[exp.Expression], Callable[[Source, exp.Expression, Bind], Expr]] = {
    exp.Decode: decode,
    exp.Unhex: bytes_alone,
    exp.FromBase64: bytes_alone,
}
