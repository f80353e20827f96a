"""Memory that matching uses again and again, and the thresholds by which it works."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Tuning:
    """The thresholds of matching: they decide what it costs, never what it gives.

    `exact_bytes`: up to this size a column's prefix bitmaps stand at every cut point; beyond, at every
    `coarse_slots`-th part of the block. `short_share`: a factor with at most one row in so many gives
    candidates to check, instead of bitmaps to AND. `hot_share`: a key with more than one row in so many is hot,
    and its clauses are visited as if no key reached them.
    """

    exact_bytes: int = 4 << 20
    coarse_slots: int = 1024
    short_share: int = 64
    hot_share: int = 64


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
