"""What user functions cost: calls, seconds and errors, counted by this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

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

    def of(self, digest: str) -> FunctionCost:
        """The cost of a function."""
        return self._costs.get(digest, FunctionCost())


costs = FunctionCosts()
