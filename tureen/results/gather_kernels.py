"""Gathering, compiled: one call collects a column's numbers from all blocks of an answer."""

from __future__ import annotations

import numba
import numpy as np

from tureen.stems.sort_kernels import compiled, pointer


@compiled
def collect(addresses: np.ndarray, starts: np.ndarray, rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Put the numbers at the rows into `found`, whose type is theirs.

    The rows from `starts[n]` to `starts[n + 1]` are of the column at `addresses[n]`.
    """
    for part in range(addresses.size):
        values = numba.carray(pointer(addresses[part]), 65_536, found.dtype)
        for place in range(starts[part], starts[part + 1]):
            found[place] = values[rows[place]]
    return found
