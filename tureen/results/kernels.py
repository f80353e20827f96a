"""Gathering, compiled: one call collects a column's numbers from all blocks of an answer."""

from __future__ import annotations

import numba
import numpy as np

from tureen.stems.kernels import compiled, pointer


@compiled
def gather32(addresses: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The 32-bit numbers at the rows; those from `starts[n]` to `starts[n + 1]` are of the column at `addresses[n]`."""
    found = np.empty(rows.size, np.int32)
    for part in range(addresses.size):
        values = numba.carray(pointer(addresses[part]), 65_536, np.int32)
        for place in range(starts[part], starts[part + 1]):
            found[place] = values[rows[place]]
    return found


@compiled
def gather64(addresses: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The 64-bit numbers at the rows, as `gather32`."""
    found = np.empty(rows.size, np.int64)
    for part in range(addresses.size):
        values = numba.carray(pointer(addresses[part]), 65_536, np.int64)
        for place in range(starts[part], starts[part + 1]):
            found[place] = values[rows[place]]
    return found
