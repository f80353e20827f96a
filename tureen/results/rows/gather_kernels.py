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


@compiled
def pick(addresses: np.ndarray, block_starts: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Copy the numbers of tuples at positions, in any order, into `values`, which has their type.

    The tuples from `block_starts[n]` on belong to the column at `addresses[n]`.
    """
    block = 0
    for index in range(positions.size):
        position = positions[index]
        # Neighbours are mostly in the same block.
        if position < block_starts[block] or (block + 1 < block_starts.size and position >= block_starts[block + 1]):
            block, end = 0, block_starts.size
            while end - block > 1:
                middle = (block + end) >> 1
                if block_starts[middle] <= position:
                    block = middle
                else:
                    end = middle
        column = numba.carray(pointer(addresses[block]), 65_536, values.dtype)
        values[index] = column[position - block_starts[block]]
    return values


@compiled
def locate(
    starts: np.ndarray, rows: np.ndarray, block_starts: np.ndarray, numbers: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    """The positions in their segment of some of its hits, given by their numbers among these; see `Hits`."""
    block = 0
    for index in range(numbers.size):
        number = numbers[index]
        if number < starts[block] or number >= starts[block + 1]:
            block, end = 0, block_starts.size
            while end - block > 1:
                middle = (block + end) >> 1
                if starts[middle] <= number:
                    block = middle
                else:
                    end = middle
        positions[index] = block_starts[block] + rows[number]
    return positions


@compiled
def ascends(keys: np.ndarray) -> bool:
    """Whether no column of some lines is followed by a smaller one; the first line counts most."""
    for column in range(1, keys.shape[1]):
        for line in range(keys.shape[0]):
            if keys[line, column - 1] != keys[line, column]:
                if keys[line, column - 1] > keys[line, column]:
                    return False
                break
    return True
