"""Immutable counts of what operators did: of all tuples so far, and of recent ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tureen.eddy.operators import Operator

_PRIOR_TUPLES = 2
_PRIOR_PASSED = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """The behaviour of an operator or a factor: the share of tuples that pass, and the cost per tuple."""

    pass_rate: float
    cost: float = 1.0

    @property
    def rank(self) -> float:
        """The share of rejected tuples per cost: the higher, the earlier it should be visited."""
        return (1 - self.pass_rate) / self.cost if self.cost > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of sending tuples to an operator.

    `tuples_out` are those about which some query is still undecided. `eliminated` counts pairs of a tuple and a query
    that rejected it there. The cost is in any unit, the same for all operators.
    """

    operator: Operator
    tuples_in: int
    tuples_out: int
    eliminated: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums of observations."""

    tuples_in: int = 0
    tuples_out: int = 0
    eliminated: int = 0
    cost: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        """The sums of both tallies."""
        return Tally(
            self.tuples_in + other.tuples_in,
            self.tuples_out + other.tuples_out,
            self.eliminated + other.eliminated,
            self.cost + other.cost,
        )

    def add(self, observation: Observation) -> Tally:
        """The sums including an observation."""
        return self + Tally(observation.tuples_in, observation.tuples_out, observation.eliminated, observation.cost)

    def profile(self, usual_cost: float = 1.0) -> Profile:
        """The estimated behaviour, smoothed by two more tuples of usual cost, of which one passed.

        So a few tuples have little weight, and no tuples mean a pass rate of one half.

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
    """The tallies of all operators of a flow.

    `window` limits the memory, in tuples admitted: the recent tallies are those of the current window and of the
    previous one, so that tickets expire. Without it all tuples count forever.
    """

    window: int | None = None
    admitted: int = 0
    """The number of tuples that entered the flow."""
    predicates: int = 0
    """The number of predicates applied: for each visit of a tuple, those of the operator."""
    total: Mapping[str, Tally] = field(default_factory=dict)
    recent: Mapping[str, Tally] = field(default_factory=dict)
    earlier: Mapping[str, Tally] = field(default_factory=dict)
    turned: int = 0
    """The number of tuples admitted before the current window."""

    def admit(self, tuples: int) -> Statistics:
        """The statistics after admitting tuples."""
        admitted = self.admitted + tuples
        if self.window is None or self.admitted - self.turned < self.window:
            return replace(self, admitted=admitted)
        return replace(self, admitted=admitted, recent={}, earlier=self.recent, turned=self.admitted)

    def after(self, observation: Observation) -> Statistics:
        """The statistics including an observation.

        >>> filter_a = Operator("a", frozenset({0, 1}))
        >>> statistics = Statistics().admit(10).after(Observation(filter_a, 10, 4, eliminated=12))
        >>> statistics.visits, statistics.predicates, statistics.tally("a").tuples_out
        (10, 20, 4)
        """
        name = observation.operator.name
        return Statistics(
            self.window,
            self.admitted,
            self.predicates + observation.tuples_in * observation.operator.predicates,
            {**self.total, name: self.tally(name).add(observation)},
            {} if self.window is None else {**self.recent, name: self.recent.get(name, Tally()).add(observation)},
            self.earlier,
            self.turned,
        )

    def tally(self, name: str) -> Tally:
        """The tally of an operator over all tuples."""
        return self.total.get(name, Tally())

    def recent_tally(self, name: str) -> Tally:
        """The tally of an operator over the current and the previous window."""
        if self.window is None:
            return self.tally(name)
        return self.recent.get(name, Tally()) + self.earlier.get(name, Tally())

    @property
    def visits(self) -> int:
        """The number of visits of a tuple to an operator."""
        return sum(tally.tuples_in for tally in self.total.values())

    @property
    def visits_per_tuple(self) -> float:
        """The average number of operators that a tuple visits, by which CACQ compares routing policies (§3)."""
        return self.visits / self.admitted if self.admitted else 0.0
