"""Reusable memory for matching."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tureen.matching.tuning import Tuning


class Buffers:
    """Memory for matching, reused from block to block; each thread needs its own.

    New memory costs a page fault for every 4 KB touched, several times the cost of matching itself.
    """

    def __init__(self, tuning: Tuning = Tuning()) -> None:  # noqa: B008  (it is frozen)
        """Start empty; memory is allocated on use."""
        self.tuning = tuning
        self._arrays: dict[str, npt.NDArray[np.generic]] = {}

    def take(self, name: str, size: int, kind: type[np.generic]) -> npt.NDArray[np.generic]:
        """An array of at least that size, whose content is undefined."""
        array = self._arrays.get(name)
        if array is None or array.size < size:
            array = self._arrays[name] = np.empty(max(size, 2 * array.size if array is not None else 64), kind)
        return array

    def grow(self, name: str) -> npt.NDArray[np.generic]:
        """The array of that name at twice its size, with its content."""
        old = self._arrays[name]
        new = np.empty(2 * old.size, old.dtype)
        new[: old.size] = old
        self._arrays[name] = new
        return new
