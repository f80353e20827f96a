"""Memory that matching uses again and again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tureen.matching.tuning import Tuning


class Buffers:
    """Memory for matching, kept from block to block; each thread needs its own.

    New memory costs a page fault for every 4 KB touched, several times what matching itself costs.
    """

    def __init__(self, tuning: Tuning = Tuning()) -> None:  # noqa: B008  (it is frozen)
        """Start with nothing; memory comes with use."""
        self.tuning = tuning
        self._kept: dict[str, npt.NDArray[np.generic]] = {}

    def take(self, name: str, size: int, kind: type[np.generic]) -> npt.NDArray[np.generic]:
        """An array of at least that size, with whatever it held before."""
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(max(size, 2 * kept.size if kept is not None else 64), kind)
        return kept

    def grow(self, name: str) -> npt.NDArray[np.generic]:
        """The array of that name at twice its size, with what it held."""
        old = self._kept[name]
        new = np.empty(2 * old.size, old.dtype)
        new[: old.size] = old
        self._kept[name] = new
        return new
