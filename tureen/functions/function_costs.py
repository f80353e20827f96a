"""What user functions cost: calls, seconds and errors, counted by this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tureen.eddy.costly_factors import CALL_COST
from tureen.eddy.statistics import Profile, Tally
from tureen.functions.user_function import UserFunction


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """The calls of a function, the seconds that they took, and the evaluations that it stopped."""

    calls: int = 0
    seconds: float = 0.0
    errors: int = 0

    @property
    def nanoseconds(self) -> float | None:
        """The nanoseconds of a call; None before the first one."""
        return self.seconds * 1e9 / self.calls if self.calls else None


@dataclass
class FunctionCosts:
    """The costs of all functions that this process called, by their digests."""

    _costs: dict[str, FunctionCost] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, function: UserFunction, calls: int, seconds: float) -> None:
        """Count calls."""
        with self._lock:
            cost = self._costs.get(function.digest, FunctionCost())
            self._costs[function.digest] = FunctionCost(cost.calls + calls, cost.seconds + seconds, cost.errors)

    def add_failure(self, function: UserFunction) -> None:
        """Count an evaluation that the function stopped."""
        with self._lock:
            cost = self._costs.get(function.digest, FunctionCost())
            self._costs[function.digest] = FunctionCost(cost.calls, cost.seconds, cost.errors + 1)

    def total(self) -> FunctionCost:
        """The sum of all functions."""
        with self._lock:
            known = list(self._costs.values())
        return FunctionCost(
            sum(cost.calls for cost in known), sum(cost.seconds for cost in known), sum(cost.errors for cost in known)
        )

    def of(self, digest: str) -> FunctionCost:
        """The cost of a function."""
        return self._costs.get(digest, FunctionCost())


@dataclass
class FactorObservations:
    """What this process observed of factors with functions, by their SQL: tuples in and out, and nanoseconds.

    At most `limit` factors are remembered.
    """

    limit: int = 10_000
    _tallies: dict[str, Tally] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, sql: str, tuples: int, passed: int, nanoseconds: float) -> None:
        """Count an evaluation."""
        with self._lock:
            if len(self._tallies) >= self.limit:
                self._tallies.clear()
            tally = self._tallies.get(sql, Tally())
            self._tallies[sql] = tally + Tally(tuples, passed, cost=nanoseconds)

    def profile(self, sql: str) -> Profile:
        """The share of tuples that pass, and the nanoseconds of a tuple; assumed ones before the first evaluation."""
        return self._tallies.get(sql, Tally()).profile(CALL_COST)


costs = FunctionCosts()
factors = FactorObservations()
