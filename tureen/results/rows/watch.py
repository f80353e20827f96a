"""Statistics of invocations, by which the engine decides which clauses are eager and which joins are kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Count:
    """The number of tuples for which a clause was evaluated or looked up, and of those that satisfied it."""

    stream: int
    tuples: int = 0
    hits: int = 0
    functions: Pace = field(default_factory=lambda: Pace())
    """The evaluations of a clause that calls user functions, which have a price of their own."""


@dataclass(slots=True)
class Pace:
    """A number of tuples, and the time they took."""

    tuples: int = 0
    nanoseconds: int = 0


@dataclass(slots=True)
class JoinCount:
    """The number of invocations of queries with a join; of those that evaluated it, and the time they took."""

    invocations: int = 0
    evaluations: int = 0
    nanoseconds: int = 0


@dataclass(slots=True)
class Counts:
    """The statistics since they were last taken."""

    clauses: dict[int, Count] = field(default_factory=dict)
    joins: dict[int, JoinCount] = field(default_factory=dict)
    evaluated: Pace = field(default_factory=Pace)
    looked_up: Pace = field(default_factory=Pace)


class Watch:
    """The statistics of one process, and the decisions based on them."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._counts = Counts()
        self.reasons: dict[int, str] = {}
        """Why a clause is eager or lazy, for clauses that the engine of this process decided about."""
        self.join_reasons: dict[int, str] = {}
        """Why the results of a join are kept or not, for joins that the engine of this process decided about."""

    def note(
        self,
        clause: int,
        stream: int,
        tuples: int,
        hits: int,
        nanoseconds: int,
        *,
        eager: bool,
        calls_functions: bool = False,
    ) -> None:
        """Count one invocation, over the indexed tuples of its window; `eager` if cells were looked up."""
        with self._lock:
            count = self._counts.clauses.get(clause)
            if count is None:
                count = self._counts.clauses[clause] = Count(stream)
            count.tuples += tuples
            count.hits += hits
            evaluated = count.functions if calls_functions else self._counts.evaluated
            pace = self._counts.looked_up if eager else evaluated
            pace.tuples += tuples
            pace.nanoseconds += nanoseconds

    def note_join(self, join: int, nanoseconds: int | None) -> None:
        """Count one invocation of a query with a join, and the time if the join was evaluated."""
        with self._lock:
            count = self._counts.joins.get(join)
            if count is None:
                count = self._counts.joins[join] = JoinCount()
            count.invocations += 1
            if nanoseconds is not None:
                count.evaluations += 1
                count.nanoseconds += nanoseconds

    def take(self) -> Counts:
        """Return the statistics and start again from zero."""
        with self._lock:
            counts, self._counts = self._counts, Counts()
            return counts
