"""ROLLUP, CUBE and GROUPING SETS: which keys each of the groupings of a query has."""

from __future__ import annotations

from itertools import product

from sqlglot import exp

from tureen.errors import SqlError, Unsupported
from tureen.language.source import Source

MOST_SETS = 256
"""How many groupings a query may have."""

Nodes = list[exp.Expression]
"""The keys of one grouping."""

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def has_sets(clause: exp.Group) -> bool:
    """Whether a GROUP BY has several groupings."""
    return bool(sets_of(clause) or clause.args.get("totals"))


def sets_of(clause: exp.Group) -> list[exp.Expression]:
    """The parts of a GROUP BY that stand for several groupings."""
    after = [one for word in ("rollup", "cube", "grouping_sets") for one in clause.args.get(word) or ()]
    return [*after, *(node for node in clause.expressions if isinstance(node, _SETS))]


def grouping_sets(source: Source, clause: exp.Group) -> list[Nodes]:
    """The groupings of a GROUP BY, each with its keys as they are written."""
    if clause.args.get("totals"):
        raise Unsupported("WITH TOTALS is not supported", hint="use ROLLUP", place=source.node(clause))
    after = [one for word in ("rollup", "cube", "grouping_sets") for one in clause.args.get(word) or ()]
    if len(after) > 1 or (after and any(isinstance(node, _SETS) for node in clause.expressions)):
        raise SqlError(
            "GROUP BY has two kinds of grouping sets", hint="write GROUPING SETS (…)", place=source.node(clause)
        )
    if after and isinstance(after[0], exp.GroupingSets):
        found = _sets(source, after[0])
    elif after:
        # GROUP BY a, b WITH ROLLUP
        found = _spread(source, type(after[0]), [[node] for node in clause.expressions], clause)
    else:
        found = [[]]
        for node in clause.expressions:
            others = _sets(source, node)
            _check_number(source, len(found) * len(others), node)
            found = [[*one, *other] for one, other in product(found, others)]
    return found


def _sets(source: Source, node: exp.Expression) -> list[Nodes]:
    """The groupings of one item of GROUP BY."""
    if isinstance(node, exp.GroupingSets):
        found = [one for item in node.expressions for one in _sets(source, item) or [[]]]
        _check_number(source, len(found), node)
        return found
    if isinstance(node, _SETS):
        return _spread(source, type(node), [_keys(item) for item in node.expressions], node)
    return [_keys(node)]


def _spread(source: Source, kind: type[exp.Expression], items: list[Nodes], node: exp.Expression) -> list[Nodes]:
    """All groupings of a ROLLUP, which leaves items out from the last on, or of a CUBE, which leaves any out."""
    _check_number(source, len(items) + 1 if kind is exp.Rollup else 1 << min(len(items), 20), node)
    if kind is exp.Rollup:
        picked = [[True] * size + [False] * (len(items) - size) for size in range(len(items), -1, -1)]
    else:
        picked = [list(one) for one in product([True, False], repeat=len(items))]
    return [[key for item, taken in zip(items, one, strict=True) if taken for key in item] for one in picked]


def _keys(node: exp.Expression) -> Nodes:
    """The keys of one item: several in parentheses stand together."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _check_number(source: Source, number: int, node: exp.Expression) -> None:
    if number > MOST_SETS:
        raise Unsupported(
            f"GROUP BY has more than {MOST_SETS} groupings", hint="write GROUPING SETS (…)", place=source.node(node)
        )
