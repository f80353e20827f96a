"""Turns the feedback of a plan off where it costs more than it saves, and on again from time to time to compare.

Testing a tuple costs more than one intermediate result that is not made; feedback pays where it avoids many of them.
What a new tuple costs is counted with and without feedback (`plan_costs`).
"""

from __future__ import annotations

TRIAL_TUPLES = 2_048
"""The number of new tuples after which their cost is known."""

LEAST_STAY, MOST_STAY = 128, 512
"""After both were tried, the cheaper one stays for that many times as many; then twice as many if it stays cheaper."""


class FeedbackSwitch:
    """Compares the costs of new tuples with and without feedback.

    >>> switch = FeedbackSwitch()
    >>> switch.is_on_after(TRIAL_TUPLES, spent=3.0), switch.is_on_after(TRIAL_TUPLES, spent=4.0)
    (False, False)
    """

    def __init__(self) -> None:
        """Start with the feedback on."""
        self.is_on = True
        self._tuples, self._before = 0, 0.0
        self._costs: dict[bool, float] = {}
        self._stay = 1
        self._next_stay = LEAST_STAY
        self.turns = 0
        """How often it was turned on or off."""

    def begin(self, spent: float) -> None:
        """A trial begins: what was spent before, to start or to turn the feedback on or off, does not count."""
        self._before = spent

    def is_on_after(self, tuples: int, spent: float) -> bool:
        """Whether feedback is on from now, after that many more tuples; `spent` is what the plan has cost so far."""
        self._tuples += tuples
        if self._tuples < self._stay * TRIAL_TUPLES:
            return self.is_on
        self._costs[self.is_on] = (spent - self._before) / self._tuples
        self._tuples, self._before = 0, spent
        other = self._costs.get(not self.is_on)
        if self._stay > 1 or other is None:
            # Try the other one.
            self.is_on, self._stay = not self.is_on, 1
            self.turns += 1
            return self.is_on
        is_tried_one_cheaper = self._costs[self.is_on] < other
        if is_tried_one_cheaper:
            self._next_stay = LEAST_STAY
        else:
            self.is_on = not self.is_on
            self.turns += 1
        self._stay, self._next_stay = self._next_stay, min(MOST_STAY, 2 * self._next_stay)
        return self.is_on
