"""The rows of an outer, semi, anti or ASOF join, given which rows are partners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tureen.join import JoinFactor, JoinKind
from tureen.joining.join_input import Numbers
from tureen.joining.joined_rows import NO_ROW, JoinedRows, concat


@dataclass(frozen=True)
class KnownPairs:
    """Pairs of rows of a join's two inputs, which satisfy its comparisons; `rest` are its other conditions."""

    left: Numbers
    right: Numbers
    rest: tuple[JoinFactor, ...]


def partnered(kind: JoinKind, left: JoinedRows, right: JoinedRows, pairs: tuple[Numbers, Numbers]) -> JoinedRows:
    """The rows of a join of that kind; of an ASOF join, the pairs are those of the closest partners."""
    first, second = pairs
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        matched = np.zeros(len(left), np.bool_)
        matched[first] = True
        return left.take(np.flatnonzero(matched if kind is JoinKind.SEMI else ~matched))
    parts = [left.take(first).beside(right.take(second))]
    if kind is not JoinKind.ASOF:
        alone = _others(first, len(left))
        parts.append(left.take(alone).beside(right.take(np.full(len(alone), NO_ROW))))
    if kind is JoinKind.FULL:
        alone = _others(second, len(right))
        parts.append(left.take(np.full(len(alone), NO_ROW)).beside(right.take(alone)))
    return concat(parts)


def closest(pairs: tuple[Numbers, Numbers], values: Numbers, *, is_last: bool) -> tuple[Numbers, Numbers]:
    """For each left row the pair with the least or, with `is_last`, the greatest value of the right row.

    Of equal values it is the first or last right row.
    """
    first, second = pairs
    order = np.lexsort((second, values, first))
    in_order = first[order]
    edges = np.flatnonzero(np.diff(in_order, append=-1) if is_last else np.diff(in_order, prepend=-1))
    return in_order[edges], second[order[edges]]


def _others(numbers: Numbers, size: int) -> Numbers:
    """The numbers below `size` that do not occur."""
    absent: npt.NDArray[np.bool_] = np.ones(size, np.bool_)
    absent[numbers] = False
    return np.flatnonzero(absent)
