"""A set of millions of closed keys, each with the mark of the punctuation that closed it first.

New keys are gathered in a small dict. A full dict becomes a sorted level; levels of similar size are merged, so that a
key is copied a few times only and a lookup searches few levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tureen.closed.key_codes import Codes

NO_MARK = np.int64(1 << 62)
"""The mark of a row that nothing closes: later than all others."""

DELTA_KEYS = 4_096
"""The number of new keys that are gathered before they are sorted."""

_SORTED_ROWS = 1_024
"""The number of rows from which on they are sorted before they are looked up, which saves cache misses."""


class Level(NamedTuple):
    """Distinct keys in ascending order: codes, or the first and second halves of hashes; and their marks."""

    first: np.ndarray
    second: np.ndarray | None
    marks: np.ndarray


class KeySet:
    """A set of codes, or of hashes."""

    def __init__(self, *, hashed: bool) -> None:
        """An empty set."""
        self.hashed = hashed
        self._levels: list[Level] = []
        self._delta: dict[int | tuple[int, int], int] = {}
        self._delta_level: Level | None = None

    def __len__(self) -> int:
        """The number of keys; a key that was closed twice may count twice until its levels are merged."""
        return sum(len(level.first) for level in self._levels) + len(self._delta)

    @property
    def nbytes(self) -> int:
        """The size of the levels in memory."""
        return sum(part.nbytes for level in self._levels for part in level if part is not None)

    def add(self, codes: Codes, marks: np.ndarray) -> None:
        """Add the valid keys; a key that is in the set keeps its earlier mark."""
        first, second, valid = codes
        if len(first) > DELTA_KEYS:
            halves = None if second is None else second[valid]
            self.add_level(_sorted(Level(first[valid], halves, marks[valid].astype(np.uint32))))
            return
        keys = first.tolist() if second is None else list(zip(first.tolist(), second.tolist(), strict=True))
        delta = self._delta
        for key, is_valid, mark in zip(keys, valid.tolist(), marks.tolist(), strict=True):
            if is_valid:
                delta.setdefault(key, mark)
        self._delta_level = None
        if len(delta) >= DELTA_KEYS:
            level, self._delta = self._sorted_delta(), {}
            self.add_level(level)
            self._delta_level = None

    def add_level(self, level: Level) -> None:
        """Add sorted keys; levels that are not much larger are merged with it."""
        while self._levels and len(self._levels[-1].first) <= 2 * len(level.first):
            level = merged_levels([self._levels.pop(), level])
        if len(level.first):
            self._levels.append(level)

    def find(self, codes: Codes) -> np.ndarray:
        """The mark of each key, or `NO_MARK`."""
        first, second, valid = codes
        marks = np.full(len(first), NO_MARK)
        levels = [*self._levels, self._sorted_delta()] if self._delta else self._levels
        if not levels:
            return marks
        if second is None:
            # Keys of tuples are often all beyond those that are closed, which tells without a search.
            low, high = min(level.first[0] for level in levels), max(level.first[-1] for level in levels)
            within = np.flatnonzero((first >= low) & (first <= high))
            if len(within) < len(first):
                if len(within):
                    marks[within] = self.find(Codes(first[within], None, valid[within]))
                return marks
        order = np.argsort(first) if len(first) >= _SORTED_ROWS else None
        if order is not None:
            first, second = first[order], None if second is None else second[order]
        for level in levels:
            np.minimum(marks, _search(level, first, second), out=marks)
        if order is not None:
            unsorted = np.empty_like(marks)
            unsorted[order] = marks
            marks = unsorted
        marks[~valid] = NO_MARK
        return marks

    def as_level(self) -> Level:
        """All keys as one level."""
        return merged_levels([*self._levels, self._sorted_delta()])

    def keep_only(self, outside: np.ndarray) -> None:
        """Replace the set by those of the keys of `as_level` at which `outside` is true."""
        level = self.as_level()
        second = None if level.second is None else level.second[outside]
        self._levels, self._delta, self._delta_level = [], {}, None
        self.add_level(Level(level.first[outside], second, level.marks[outside]))

    def _sorted_delta(self) -> Level:
        if self._delta_level is None:
            halves = np.array(list(self._delta), np.int64).reshape(len(self._delta), 2 if self.hashed else 1)
            marks = np.fromiter(self._delta.values(), np.uint32, len(self._delta))
            second = np.ascontiguousarray(halves[:, 1]) if self.hashed else None
            self._delta_level = _sorted(Level(np.ascontiguousarray(halves[:, 0]), second, marks))
        return self._delta_level


def merged_levels(levels: list[Level]) -> Level:
    """The keys of several levels, of which the earlier ones have the earlier marks."""
    first = np.concatenate([level.first for level in levels])
    second = None
    if levels[0].second is not None:
        second = np.concatenate([level.second for level in levels if level.second is not None])
    # The sort is stable and uses that the levels are sorted already: it takes about as long as copying them.
    return _sorted(Level(first, second, np.concatenate([level.marks for level in levels])))


def _sorted(level: Level) -> Level:
    order = np.argsort(level.first, kind="stable")
    first, marks = level.first[order], level.marks[order]
    second = None if level.second is None else level.second[order]
    distinct = np.ones(len(first), np.bool_)
    distinct[1:] = first[1:] != first[:-1]
    if second is not None:
        distinct[1:] |= second[1:] != second[:-1]
    if distinct.all():
        return Level(first, second, marks)
    return Level(first[distinct], None if second is None else second[distinct], marks[distinct])


def _search(level: Level, first: np.ndarray, second: np.ndarray | None) -> np.ndarray:
    """The marks of keys in one level, or `NO_MARK`."""
    if not len(level.first):
        return np.full(len(first), NO_MARK)
    index = np.searchsorted(level.first, first)
    np.minimum(index, len(level.first) - 1, out=index)
    hit = level.first[index] == first
    if second is not None:
        assert level.second is not None
        # Different keys with the same first half are next to each other.
        while True:
            other = hit & (level.second[index] != second)
            following = np.minimum(index + 1, len(level.first) - 1)
            movable = other & (following > index) & (level.first[following] == first)
            if not movable.any():
                break
            index = np.where(movable, following, index)
        hit &= ~other
    return np.where(hit, level.marks[index].astype(np.int64), NO_MARK)
