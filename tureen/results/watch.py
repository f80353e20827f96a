"""What invocations ask for, counted as they go by: who decides what to keep ready reads it from here."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Count:
    """How many tuples a clause was asked about, and how many of them it held for."""

    stream: int
    tuples: int = 0
    hits: int = 0


@dataclass(slots=True)
class Pace:
    """How long so many tuples took."""

    tuples: int = 0
    nanoseconds: int = 0


@dataclass(slots=True)
class Counts:
    """What was counted since the last look."""

    clauses: dict[int, Count] = field(default_factory=dict)
    evaluated: Pace = field(default_factory=Pace)
    looked_up: Pace = field(default_factory=Pace)


class Watch:
    """Counts of one process, and what was decided because of them."""

    def __init__(self) -> None:
        """Start from nothing."""
        self._lock = threading.Lock()
        self._counts = Counts()
        self.reasons: dict[int, str] = {}
        """Why a clause's results are kept ready or not, as far as somebody decided it here."""

    def note(self, clause: int, stream: int, tuples: int, hits: int, nanoseconds: int, *, kept: bool) -> None:
        """Count one invocation's look at the indexed tuples of its window."""
        with self._lock:
            count = self._counts.clauses.get(clause)
            if count is None:
                count = self._counts.clauses[clause] = Count(stream)
            count.tuples += tuples
            count.hits += hits
            pace = self._counts.looked_up if kept else self._counts.evaluated
            pace.tuples += tuples
            pace.nanoseconds += nanoseconds

    def take(self) -> Counts:
        """What was counted, which starts from nothing again."""
        with self._lock:
            counts, self._counts = self._counts, Counts()
            return counts
