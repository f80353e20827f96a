"""The choice of the plan of a continuous join: that of a hint, or the one with less work as observed.

The eddy joins every new tuple anew with all other inputs. Where it makes many intermediate results of which few become
joined tuples, a tree with feedback makes fewer: it keeps them, and does not make those without partners. A tree holds
what its windows contain, so that all inputs must have windows of time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tureen.plan_hint import BUSHY, EDDY

OBSERVED_TUPLES = 16_384
"""After this many new tuples the plan is chosen again."""

EDDY_VISITS = 4.0
"""A tree is tried when the eddy sends a new tuple, and what it is joined with, to more SteMs than this per input."""

USELESS_SHARE = 0.75
"""And when at least this share of it becomes no joined tuple."""


class PlanChoice:
    """The choice for one join, by counts of tuples."""

    def __init__(self, plan: str | None, jit: bool | None, inputs: int) -> None:
        """Follow a hint, as far as there is one; the join has that many inputs."""
        self.plan = plan or (BUSHY if jit else EDDY)
        self.jit = jit
        self._is_free = plan is None and not jit and inputs > 2
        self._visits = EDDY_VISITS * (inputs - 1)
        self._seen = (0, 0, 0)
        self.changes = 0
        """How often the plan was changed."""

    def observe_eddy(self, tuples: int, visits: int, joined: int, reach: Sequence[int | None]) -> None:
        """The new tuples and their visits to SteMs so far, and the joined tuples of the last block.

        >>> choice = PlanChoice(None, None, 3)
        >>> choice.observe_eddy(OBSERVED_TUPLES, 10 * OBSERVED_TUPLES, 5, [60, 60, 60])
        >>> choice.plan
        'bushy'
        """
        before, visits_before, joined_before = self._seen
        joined += joined_before
        if tuples - before < OBSERVED_TUPLES:
            self._seen = before, visits_before, joined
            return
        self._seen = tuples, visits, 0
        made = (visits - visits_before) / (tuples - before)
        is_useless = joined <= (1 - USELESS_SHARE) * (visits - visits_before)
        if self._is_free and None not in reach and made > self._visits and is_useless:
            self._change(BUSHY, made)

    def observe_tree(self, tuples: int, made: int) -> None:
        """The new tuples, and the intermediate results and joined tuples of a tree so far."""
        before, made_before, _ = self._seen
        if tuples - before < OBSERVED_TUPLES:
            return
        self._seen = tuples, made, 0
        if self._is_free and made - made_before > self._visits * (tuples - before):
            self._change(EDDY, 2 * self._visits)

    def _change(self, plan: str, visits: float) -> None:
        """Change the plan; the other one is chosen again if it would take fewer than `visits` visits."""
        self.plan, self._visits, self._seen = plan, visits, (0, 0, 0)
        self.changes += 1
