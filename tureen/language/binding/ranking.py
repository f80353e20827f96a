"""Functions that require OVER: ranks, and values of other rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tureen.errors import SqlError
from tureen.language.binding.scope import Scope
from tureen.language.source import Source
from tureen.language.tree import DOUBLE, INT
from tureen.schema import Type

WRAPPERS = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)
"""Nodes that may wrap a call."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A function of a row's position in its window; its type is None if it returns a value of another row."""

    node: type[exp.Expression]
    type: Type | None = None


RANKS: dict[str, Rank] = {
    "row_number": Rank(exp.RowNumber, INT),
    "rank": Rank(exp.Rank, INT),
    "dense_rank": Rank(exp.DenseRank, INT),
    "ntile": Rank(exp.Ntile, INT),
    "percent_rank": Rank(exp.PercentRank, DOUBLE),
    "cume_dist": Rank(exp.CumeDist, DOUBLE),
    "lag": Rank(exp.Lag),
    "lead": Rank(exp.Lead),
    "nth_value": Rank(exp.NthValue),
}
_NODES = tuple(rank.node for rank in RANKS.values())
_NAMES = {rank.node: name for name, rank in RANKS.items()}


def is_ranking(node: exp.Expression) -> bool:
    """Whether a node is a call of such a function, possibly wrapped."""
    while isinstance(node, WRAPPERS):
        node = node.this
    return isinstance(node, _NODES)


def function_name(source: Source, node: exp.Expression) -> str:
    """The function's name in Spark, or else in the text."""
    while isinstance(node, WRAPPERS):
        node = node.this
    if type(node) in _NAMES:
        return _NAMES[type(node)]
    raw = source.raw(node)
    return raw.lower() if raw is not None and raw.isidentifier() else node.name or node.key


def without_over(scope: Scope, node: exp.Expression) -> SqlError:
    """The error for such a function without OVER."""
    name = function_name(scope.source, node)
    return SqlError(
        f"the window function {name} requires OVER",
        hint=f"write {name}(…) OVER (ORDER BY …)",
        location=scope.source.node(node),
    )


def misplaced(scope: Scope, node: exp.Expression) -> SqlError:
    """The error for a window function where none is allowed."""
    if scope.clause in ("WHERE", "HAVING"):
        hint = "write conditions on window functions in QUALIFY"
    else:
        hint = "window functions are allowed in the select list, in QUALIFY and in ORDER BY"
    clause = scope.clause.replace("another aggregate", "an aggregate")
    return SqlError(f"a window function is not allowed in {clause}", hint=hint, location=scope.source.node(node))
