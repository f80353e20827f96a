"""Compiled gathering: one call collects a column's numbers from all blocks of an answer."""

from __future__ import annotations

import numba
import numpy as np

from tureen.stems.sort_kernels import compiled, pointer


@compiled
def collect(addresses: np.ndarray, starts: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Copy the numbers of the rows into `values`, which has their type.

    The rows from `starts[n]` to `starts[n + 1]` belong to the column at `addresses[n]`.
    """
    for part in range(addresses.size):
        block = numba.carray(pointer(addresses[part]), 65_536, values.dtype)
        for index in range(starts[part], starts[part + 1]):
            values[index] = block[rows[index]]
    return values
