"""Probing a SteM with joined rows: the pairs of rows and tuples that satisfy comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

import numpy as np

from tureen.join import JoinCompare
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_input import Numbers
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_columns import key_columns, key_equalities, other_field
from tureen.joining.row_conditions import inputs_of
from tureen.joining.stem import Stem
from tureen.stems.key_index import HASHED, codes_of, valid_flags

Narrow = Callable[[Numbers, Numbers], tuple[Numbers, Numbers]]
"""A filter of pairs of rows and tuples."""


class ProbedPairs(NamedTuple):
    """Joined rows and tuples of another input, as joined rows; `left` and `right` are the numbers of both."""

    rows: JoinedRows
    left: Numbers
    right: Numbers


def comparisons_between(factors: Sequence[JoinCompare], joined: Set[int], number: int) -> list[JoinCompare]:
    """The comparisons of an input with those that are joined."""
    return [factor for factor in factors if number in inputs_of(factor) and inputs_of(factor) <= joined | {number}]


def probed_pairs(
    evaluation: JoinEvaluation,
    rows: JoinedRows,
    number: int,
    stem: Stem,
    between: Sequence[JoinCompare],
    narrow: Narrow = lambda left, right: (left, right),
) -> ProbedPairs:
    """The pairs that satisfy comparisons, of which at least one is an equality; `narrow` applies before the others."""
    equalities = key_equalities(between, number)
    columns = key_columns(equalities, number)
    probes = [evaluation.values(other_field(factor, number), rows) for factor in equalities]
    codes = [codes_of(column, domain) for column, (_, domain) in zip(probes, columns, strict=True)]
    valid = np.logical_and.reduce([valid_flags(column) for column in probes])
    left, right = stem.probe(columns, np.ascontiguousarray(np.stack(codes)), valid)
    evaluation.limits.check_rows(len(left))
    left, right = narrow(left, right)
    pairs = rows.take(left).beside(JoinedRows({number: right}, len(right)))
    exact = [factor for factor in equalities if factor.domain not in HASHED]
    rest = [factor for factor in between if factor not in exact]
    if rest:
        kept = evaluation.numbers_where(pairs, rest)
        pairs, left, right = pairs.take(kept), left[kept], right[kept]
    return ProbedPairs(pairs, left, right)
