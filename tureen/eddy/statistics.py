"""What was observed of operators: frozen counts, of all tuples so far and of the latest ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tureen.eddy.operators import Operator

_PRIOR_TUPLES = 2
_PRIOR_PASSED = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """How an operator or a factor behaves: the share of tuples that it lets through, and its cost for each tuple."""

    pass_rate: float
    cost: float = 1.0

    @property
    def rank(self) -> float:
        """How much it is worth to go first: the share of tuples that it rejects, for its cost."""
        return (1 - self.pass_rate) / self.cost if self.cost > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of sending some tuples to an operator.

    Those that come out go on: some query is still undecided about them. `eliminated` counts pairs of a tuple and
    a query that rejected it there. The cost is in any unit, the same for all.
    """

    operator: Operator
    tuples_in: int
    tuples_out: int
    eliminated: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of some observations."""

    tuples_in: int = 0
    tuples_out: int = 0
    eliminated: int = 0
    cost: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        """The sums of both."""
        return Tally(
            self.tuples_in + other.tuples_in,
            self.tuples_out + other.tuples_out,
            self.eliminated + other.eliminated,
            self.cost + other.cost,
        )

    def plus(self, seen: Observation) -> Tally:
        """The sums with one more observation."""
        return self + Tally(seen.tuples_in, seen.tuples_out, seen.eliminated, seen.cost)

    def profile(self, usual_cost: float = 1.0) -> Profile:
        """The behaviour that the sums speak for, as if two more tuples had come, of which one passed at usual cost.

        So a few tuples do not decide anything, and none at all leave the middle.

        >>> Tally().profile(), Tally(tuples_in=98, tuples_out=9, cost=198.0).profile()
        (Profile(pass_rate=0.5, cost=1.0), Profile(pass_rate=0.1, cost=2.0))
        """
        tuples = self.tuples_in + _PRIOR_TUPLES
        return Profile(
            (self.tuples_out + _PRIOR_PASSED) / tuples,
            (self.cost + _PRIOR_TUPLES * usual_cost) / tuples,
        )


@dataclass(frozen=True, slots=True)
class Statistics:
    """What all operators of a flow have done so far.

    `window` says how fast the past is forgotten, in tuples admitted: what counts as late are the tuples of the
    current window and of the one before, so that tickets expire. Without it all tuples count for ever.
    """

    window: int | None = None
    admitted: int = 0
    """Tuples that entered the flow."""
    predicates: int = 0
    """Predicates applied: for each visit of a tuple, those of the operator."""
    total: Mapping[str, Tally] = field(default_factory=dict)
    recent: Mapping[str, Tally] = field(default_factory=dict)
    earlier: Mapping[str, Tally] = field(default_factory=dict)
    turned: int = 0
    """How many tuples had been admitted when the current window began."""

    def admit(self, tuples: int) -> Statistics:
        """The same with so many tuples more."""
        admitted = self.admitted + tuples
        if self.window is None or self.admitted - self.turned < self.window:
            return replace(self, admitted=admitted)
        return replace(self, admitted=admitted, recent={}, earlier=self.recent, turned=self.admitted)

    def after(self, seen: Observation) -> Statistics:
        """The same with one observation more.

        >>> filter_a = Operator("a", frozenset({0, 1}))
        >>> seen = Statistics().admit(10).after(Observation(filter_a, 10, 4, eliminated=12))
        >>> seen.visits, seen.predicates, seen.tally("a").tuples_out
        (10, 20, 4)
        """
        name = seen.operator.name
        return Statistics(
            self.window,
            self.admitted,
            self.predicates + seen.tuples_in * seen.operator.predicates,
            {**self.total, name: self.tally(name).plus(seen)},
            {} if self.window is None else {**self.recent, name: self.recent.get(name, Tally()).plus(seen)},
            self.earlier,
            self.turned,
        )

    def tally(self, name: str) -> Tally:
        """What an operator has done since the beginning."""
        return self.total.get(name, Tally())

    def lately(self, name: str) -> Tally:
        """What an operator has done in this window and the one before."""
        if self.window is None:
            return self.tally(name)
        return self.recent.get(name, Tally()) + self.earlier.get(name, Tally())

    @property
    def visits(self) -> int:
        """How often a tuple was sent to an operator."""
        return sum(tally.tuples_in for tally in self.total.values())

    @property
    def visits_per_tuple(self) -> float:
        """How many operators a tuple visits: what CACQ compares routing policies by (§3)."""
        return self.visits / self.admitted if self.admitted else 0.0
