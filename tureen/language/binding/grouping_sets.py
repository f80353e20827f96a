"""ROLLUP, CUBE and GROUPING SETS: the keys of each grouping of a query."""

from __future__ import annotations

from itertools import product

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source

MOST_SETS = 256
"""The maximum number of groupings of a query."""

Nodes = list[exp.Expression]
"""The keys of one grouping."""

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def has_sets(clause: exp.Group) -> bool:
    """Whether a GROUP BY has several groupings."""
    return bool(sets_of(clause) or clause.args.get("totals"))


def sets_of(clause: exp.Group) -> list[exp.Expression]:
    """The parts of a GROUP BY that expand to several groupings."""
    after = [node for word in ("rollup", "cube", "grouping_sets") for node in clause.args.get(word) or ()]
    return [*after, *(node for node in clause.expressions if isinstance(node, _SETS))]


def grouping_sets(source: Source, clause: exp.Group) -> list[Nodes]:
    """The groupings of a GROUP BY, each a list of the nodes of its keys."""
    if clause.args.get("totals"):
        raise Unsupported("WITH TOTALS is not supported", hint="use ROLLUP", location=source.node(clause))
    after = [node for word in ("rollup", "cube", "grouping_sets") for node in clause.args.get(word) or ()]
    if len(after) > 1 or (after and any(isinstance(node, _SETS) for node in clause.expressions)):
        raise SqlError(
            "GROUP BY has two kinds of grouping sets", hint="write GROUPING SETS (…)", location=source.node(clause)
        )
    if after and isinstance(after[0], exp.GroupingSets):
        groupings = _sets(source, after[0])
    elif after:
        # GROUP BY a, b WITH ROLLUP
        groupings = _expanded(source, type(after[0]), [[node] for node in clause.expressions], clause)
    else:
        groupings = [[]]
        for node in clause.expressions:
            others = _sets(source, node)
            _check_count(source, len(groupings) * len(others), node)
            groupings = [[*left, *right] for left, right in product(groupings, others)]
    return groupings


def _sets(source: Source, node: exp.Expression) -> list[Nodes]:
    """The groupings of an item of GROUP BY."""
    if isinstance(node, exp.GroupingSets):
        groupings = [keys for item in node.expressions for keys in _sets(source, item) or [[]]]
        _check_count(source, len(groupings), node)
        return groupings
    if isinstance(node, _SETS):
        return _expanded(source, type(node), [_keys(item) for item in node.expressions], node)
    return [_keys(node)]


def _expanded(source: Source, kind: type[exp.Expression], items: list[Nodes], node: exp.Expression) -> list[Nodes]:
    """The groupings of a ROLLUP (all prefixes of its items) or of a CUBE (all subsets)."""
    _check_count(source, len(items) + 1 if kind is exp.Rollup else 1 << min(len(items), 20), node)
    if kind is exp.Rollup:
        masks = [[True] * size + [False] * (len(items) - size) for size in range(len(items), -1, -1)]
    else:
        masks = [list(mask) for mask in product([True, False], repeat=len(items))]
    return [[key for item, included in zip(items, mask, strict=True) if included for key in item] for mask in masks]


def _keys(node: exp.Expression) -> Nodes:
    """The keys of an item: one, or several in parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _check_count(source: Source, count: int, node: exp.Expression) -> None:
    if count > MOST_SETS:
        raise Unsupported(
            f"GROUP BY has more than {MOST_SETS} groupings", hint="write GROUPING SETS (…)", location=source.node(node)
        )
