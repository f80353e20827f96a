"""The functions that a condition may call: those on which DuckDB was tried and agrees with Spark."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tureen.errors import Unsupported, nearest
from tureen.language.source import Source
from tureen.language.tree import Expr

FUNCTIONS: dict[str, str] = {}


def bind_function(source: Source, node: exp.Expression, bind: Callable[[exp.Expression], Expr]) -> Expr:
    """A function call over bound arguments."""
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    raise Unsupported(
        f"{name} is not supported", hint=nearest(name, FUNCTIONS), place=source.node(node)
    )
