"""Compiled loops of joins: intervals of sorted partners, and the pairs within them."""

from __future__ import annotations

import numpy as np

from tureen.stems.sort_kernels import compiled


@compiled
def narrow_range(
    sorted_keys: np.ndarray,
    bounds: np.ndarray,
    valid: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    is_lower: bool,
    is_open: bool,
) -> None:
    """Narrow the interval of each row to the sorted keys on one side of its bound."""
    for row in range(bounds.size):
        low, high = firsts[row], lasts[row]
        if low >= high:
            continue
        if not valid[row]:
            lasts[row] = low
            continue
        bound = bounds[row]
        # The first index with a key at or after the bound; after it, if equal keys belong to the lower part.
        after_equal = is_open == is_lower
        while low < high:
            middle = (low + high) // 2
            key = sorted_keys[middle]
            if key < bound or (after_equal and key == bound):
                low = middle + 1
            else:
                high = middle
        if is_lower:
            firsts[row] = low
        else:
            lasts[row] = low


@compiled
def fill_pairs(
    firsts: np.ndarray, lasts: np.ndarray, begin: int, end: int, left: np.ndarray, right: np.ndarray
) -> None:
    """Write each pair of a row from `begin` to before `end` and an index of its interval."""
    at = 0
    for row in range(begin, end):
        for index in range(firsts[row], lasts[row]):
            left[at] = row
            right[at] = index
            at += 1
