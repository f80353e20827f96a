"""Joins of two streams by their key indexes alone, one segment of each at a time.

An index has its keys in the order of their hashes. So the keys of one segment find those of another in the order in
which both are stored, no column of keys is read, and what two segments have fits into the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tureen.join import InnerJoin, JoinCompare
from tureen.joining.join_input import Numbers
from tureen.joining.join_limits import JoinLimits
from tureen.joining.key_columns import key_columns, key_equalities
from tureen.results.joins.join_inputs import IndexedSegment, StreamInput
from tureen.stems.key_index import HASHED

Joined = tuple[list[Numbers], list[Numbers]]
"""The ids and the times of the tuples of joined rows, an array for each of the two streams."""


def joined_by_indexes(tree: InnerJoin, inputs: Sequence[StreamInput], limits: JoinLimits) -> Iterator[Joined] | None:
    """The joined tuples of two streams, for each two segments.

    None if indexes are missing, tell not enough, or take longer than hashing.
    """
    equalities = key_equalities(tree.factors, 0)
    is_told = equalities and len(equalities) == len(tree.factors) and all(map(_is_exact, equalities))
    if len(inputs) != 2 or not is_told:
        return None
    probing, probed = sorted((0, 1), key=lambda number: len(inputs[number]))
    if not inputs[probed].may_probe(len(inputs[probing])):
        return None
    first, second = (inputs[number].indexed_segments(key_columns(equalities, number)) for number in (0, 1))
    if first is None or second is None:
        return None
    if probing == 0:
        return _joined(first, second, limits)
    return ((ids[::-1], times[::-1]) for ids, times in _joined(second, first, limits))


def _is_exact(factor: JoinCompare) -> bool:
    """Whether equal keys of an index mean equal values."""
    return factor.domain not in HASHED


def _joined(
    probing: Sequence[IndexedSegment], probed: Sequence[IndexedSegment], limits: JoinLimits
) -> Iterator[Joined]:
    total = 0
    of_probed = [segment.times(0, segment.rows) for segment, _ in probed]
    for segment, index in probing:
        probes, times = index.probes(), segment.times(0, segment.rows)
        for (other, other_index), other_times in zip(probed, of_probed, strict=True):
            rows, other_rows = other_index.find(probes)
            total += len(rows)
            limits.check_rows(total)
            if len(rows):
                ids = [segment.ids_at(rows), other.ids_at(other_rows)]
                yield ids, [times[rows], other_times[other_rows]]
