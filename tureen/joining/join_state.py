"""The state of a continuous join, input by input: which of the tuples that arrived future results can contain."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tureen.joining.join_input import Numbers
from tureen.joining.stem import Ids
from tureen.joining.tuple_id_set import TupleIdSet


@dataclass
class InputState:
    """The tuples of one input that have left the state, and counts since the operator started."""

    dead: TupleIdSet = field(default_factory=TupleIdSet)
    """The ids of tuples that punctuations have removed from the state."""
    purged: int = 0
    """Tuples that were in the state until a punctuation of another input removed them."""
    discarded: int = 0
    """Tuples that were joined and never in the state, because other inputs had closed their keys before."""
    dropped: int = 0
    """Tuples that were not joined, because no result can contain them."""
    punctuations: int = 0
    """Punctuations that were read."""
    unscanned: list[Ids] = field(default_factory=list)
    """Intervals of ids whose tuples are still to be compared with what is closed."""

    _dropped: Numbers = field(default_factory=lambda: EMPTY)
    _left: list[Numbers] = field(default_factory=list)

    def purge(self, ids: Numbers) -> None:
        """Remove tuples that were in the state."""
        self.purged += self.dead.add(ids)
        self._left.append(ids)

    def drop(self, ids: Numbers) -> None:
        """Do not join new tuples; whether they are in the state is decided with the others of their block."""
        self.dropped += len(ids)
        self._dropped = np.concatenate([self._dropped, ids])

    def discard(self, ids: Numbers) -> None:
        """Leave out new tuples; dropped ones do not count again."""
        self.dead.add(ids)
        self._left.append(ids)
        self.discarded += len(ids)
        if len(self._dropped):
            self.discarded -= int(np.isin(ids, self._dropped).sum())
            self._dropped = EMPTY

    def take_left(self) -> Numbers:
        """The ids of tuples that were removed or left out since the last call."""
        left, self._left = self._left, []
        return np.concatenate([EMPTY, *left])

    def scan_again(self, end: int) -> None:
        """Compare all tuples before an id with what is closed."""
        self.unscanned = [(0, end)]

    def next_scan(self, size: int) -> Ids | None:
        """The next interval of ids to compare, with at most `size` ids, the newest first; None if none is left."""
        if not self.unscanned:
            return None
        first, end = self.unscanned.pop()
        begin = max(first, end - size)
        if begin > first:
            self.unscanned.append((first, begin))
        return begin, end


EMPTY: Numbers = np.empty(0, np.int64)
