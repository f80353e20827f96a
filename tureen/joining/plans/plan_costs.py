"""What a plan costs, by counts of what it does: the same for the same tuples, whatever else the machine does.

The weights are microseconds, as measured on two cores; only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tureen.joining.plans.demand import PartnerDemand

STEP, PROBE, RESULT = 30.0, 0.05, 0.15
"""A block of joined tuples that are joined with another part, each of them, and each joined tuple that is kept."""

RUN, TEST, PUBLICATION = 40.0, 0.3, 0.3
"""A block of tuples whose demand is tested, each test, and each key that is counted for another input."""


@dataclass
class PlanWork:
    """Counts of a plan that its nodes do not have."""

    steps: int = 0
    probes: int = 0
    _past_demand: float = 0.0

    def count_step(self, tuples: int) -> None:
        """A block of joined tuples is joined with another part."""
        self.steps += 1
        self.probes += tuples

    def count_demand(self, demand: PartnerDemand) -> None:
        """A join has no feedback any more."""
        self._past_demand += _cost_of(demand)

    def spent(self, kept: int, demands: Sequence[PartnerDemand | None]) -> float:
        """The cost of all so far; `kept` are the tuples and joined tuples that were put into nodes."""
        of_demand = sum(_cost_of(demand) for demand in demands if demand is not None)
        return STEP * self.steps + PROBE * self.probes + RESULT * kept + self._past_demand + of_demand


def _cost_of(demand: PartnerDemand) -> float:
    return RUN * demand.runs + TEST * demand.tests + PUBLICATION * demand.publications
