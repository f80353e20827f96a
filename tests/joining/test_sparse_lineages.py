"""Sparse lineages: the same sets of queries as bitmaps, after any operation."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining.lineages import Lineages, bitmap_of
from tureen.joining.sparse_lineages import SparseLineages, combined

WORDS = 2
ROWS = 6

Sets = list[set[int]]
"""The slots of each row."""

lineage_sets = st.lists(st.sets(st.integers(0, 64 * WORDS - 1), max_size=4), min_size=ROWS, max_size=ROWS)


def _dense(sets: Sets) -> Lineages:
    return Lineages.of_rows(np.stack([bitmap_of(sorted(slots), WORDS) for slots in sets]))


def _sparse(sets: Sets) -> SparseLineages:
    pairs = np.array([(row, slot) for row, slots in enumerate(sets) for slot in sorted(slots)], np.int64).reshape(-1, 2)
    return SparseLineages(pairs[:, 0], pairs[:, 1], len(sets), WORDS)


def _check(lineages: Lineages | SparseLineages, sets: Sets) -> None:
    """Compare what lineages tell with sets."""
    assert len(lineages) == len(sets)
    assert lineages.nonempty.tolist() == [row for row, slots in enumerate(sets) if slots]
    compacted = lineages.compacted()
    assert compacted.slots.tolist() == sorted(set().union(*sets))
    for slot in {0, 5, *set().union(*sets)}:
        assert sorted(compacted.rows_of(slot).tolist()) == [row for row, slots in enumerate(sets) if slot in slots]
    every = np.full(WORDS, np.iinfo(np.uint64).max, np.uint64)
    pairs = lineages.pairs(np.arange(len(sets)), every, 1_000)
    assert pairs is not None
    assert list(zip(*(each.tolist() for each in pairs), strict=True)) == [
        (row, slot) for row, slots in enumerate(sets) for slot in sorted(slots)
    ]
    count = sum(map(len, sets))
    assert count == 0 or lineages.pairs(np.arange(len(sets)), every, count - 1) is None


@example_settings(60)
@given(lineage_sets, lineage_sets, st.sets(st.integers(0, 64 * WORDS - 1)), st.lists(st.integers(0, ROWS - 1)))
def test_operations_equal_those_of_sets(first: Sets, second: Sets, chosen: set[int], rows: list[int]) -> None:
    bitmap, flags = bitmap_of(sorted(chosen), WORDS), np.array([row in rows for row in range(ROWS)])
    both = [left & right for left, right in zip(first, second, strict=True)]
    without = [slots - chosen if flags[row] else slots for row, slots in enumerate(first)]
    for left in (_dense(first), _sparse(first)):
        _check(left, first)
        _check(left.take(np.array(rows, np.int64)), [first[row] for row in rows])
        _check(left.without(bitmap, flags), without)
        assert left.rows_with(bitmap).tolist() == [row for row, slots in enumerate(first) if slots & chosen]
        for right in (_dense(second), _sparse(second)):
            _check(combined(left, right), both)
