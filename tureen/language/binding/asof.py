"""ASOF JOIN: equalities, and one inequality by which the closest partner is chosen."""

from __future__ import annotations

from dataclasses import replace

from tureen.errors import SqlError, Unsupported
from tureen.join import Join, JoinCompare, JoinFactor, leaves
from tureen.language.source import Source
from tureen.predicate import FLIPPED

_HINT = "write ON t.key = q.key AND t.ts >= q.ts"


def latest_partner(source: Source, join: Join, at: int) -> Join:
    """A join with its inequality as `latest`; its left field belongs to the left side."""
    left = set(leaves(join.left))
    others: list[JoinFactor] = []
    inequalities: list[JoinCompare] = []
    for factor in join.factors:
        if isinstance(factor, JoinCompare) and factor.op in ("<", "<=", ">", ">="):
            inequalities.append(factor if factor.left.input in left else _exchanged(source, factor, at))
        else:
            others.append(factor)
    if len(inequalities) != 1:
        raise SqlError(
            f"ASOF JOIN requires one inequality between its sides, got {len(inequalities)}",
            hint=_HINT,
            location=source.location(at),
        )
    return replace(join, factors=tuple(others), latest=inequalities[0])


def _exchanged(source: Source, factor: JoinCompare, at: int) -> JoinCompare:
    """The same comparison with its sides exchanged."""
    if factor.offset:
        raise Unsupported(
            "an offset in the inequality of ASOF JOIN is only supported on its right side",
            hint=_HINT,
            location=source.location(at),
        )
    return replace(factor, left=factor.right, op=FLIPPED[factor.op], right=factor.left)
