"""A set of tuple ids of one stream: a bit array per 65,536 ids, as far as they are not all in the set."""

from __future__ import annotations

import numpy as np

from tureen.joining.join_input import Flags, Numbers

_SHIFT = 16
_SIZE = 1 << _SHIFT


class TupleIdSet:
    """Tuple ids; adding and looking up take arrays."""

    def __init__(self) -> None:
        """An empty set."""
        self._chunks: dict[int, Flags | None] = {}
        """The flags of the ids of a chunk; None if all of them are in the set."""
        self._counts: dict[int, int] = {}
        self._size = 0

    def __len__(self) -> int:
        """The number of ids."""
        return self._size

    def add(self, ids: Numbers) -> int:
        """Add ids; the number of those that were not in the set."""
        before = self._size
        for chunk, here in _by_chunk(ids):
            flags = self._chunks.get(chunk, _NOTHING)
            if flags is None:
                continue
            if flags is _NOTHING:
                flags = self._chunks[chunk] = np.zeros(_SIZE, np.bool_)
            flags[ids[here] & (_SIZE - 1)] = True
            count = int(np.count_nonzero(flags))
            self._size += count - self._counts.get(chunk, 0)
            self._counts[chunk] = count
            if count == _SIZE:
                self._chunks[chunk] = None
        return self._size - before

    def contains(self, ids: Numbers) -> Flags:
        """Which of the given ids are in the set."""
        if not self._size or not len(ids):
            return np.zeros(len(ids), np.bool_)
        chunk = int(ids.min()) >> _SHIFT
        if int(ids.max()) >> _SHIFT == chunk:
            # Most calls are about neighbouring ids, for which grouping by chunk costs more than the look-up.
            return self._among(chunk, ids)
        result = np.empty(len(ids), np.bool_)
        for chunk, here in _by_chunk(ids):
            result[here] = self._among(chunk, ids[here])
        return result

    def _among(self, chunk: int, ids: Numbers) -> Flags:
        """Which ids of one chunk are in the set."""
        flags = self._chunks.get(chunk, _NOTHING)
        if flags is None or flags is _NOTHING:
            return np.full(len(ids), flags is None)
        members: Flags = flags[ids & (_SIZE - 1)]
        return members

    def count_between(self, first: int, end: int) -> int:
        """The number of ids in an interval."""
        if not self._size or end <= first:
            return 0
        total = 0
        for chunk in range(first >> _SHIFT, (end - 1 >> _SHIFT) + 1):
            flags = self._chunks.get(chunk, _NOTHING)
            low, high = max(first - (chunk << _SHIFT), 0), min(end - (chunk << _SHIFT), _SIZE)
            if high - low == _SIZE:
                total += self._counts.get(chunk, 0)
            elif flags is None:
                total += high - low
            elif flags is not _NOTHING:
                total += int(np.count_nonzero(flags[low:high]))
        return total

    def first_absent(self, first: int) -> int:
        """The least id from `first` on that is not in the set.

        >>> ids = TupleIdSet()
        >>> ids.add(np.array([2, 3, 5])), [ids.first_absent(first) for first in (0, 2, 5)]
        (3, [0, 4, 6])
        """
        while True:
            chunk, low = first >> _SHIFT, first & (_SIZE - 1)
            flags = self._chunks.get(chunk, _NOTHING)
            if flags is _NOTHING:
                return first
            if flags is not None and not flags[low:].all():
                return first + int(np.argmin(flags[low:]))
            first = (chunk + 1) << _SHIFT


def _by_chunk(ids: Numbers) -> list[tuple[int, Flags]]:
    """The chunks that have some of the ids, and which."""
    chunks = ids >> _SHIFT
    return [(chunk, chunks == chunk) for chunk in np.unique(chunks).tolist()]


_NOTHING: Flags = np.zeros(0, np.bool_)
