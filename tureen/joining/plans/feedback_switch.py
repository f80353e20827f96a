"""Turns the feedback of a plan off where it does not help, and on again to see whether it does now.

Testing a tuple costs more than one intermediate result that is not made; feedback pays where it avoids many of them.
What a new tuple costs is measured with and without feedback.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

TRIAL_TUPLES = 2_048
"""The number of new tuples after which their cost is known."""

LEAST_STAY, MOST_STAY = 128, 512
"""After both were tried, the cheaper one stays for that many times as many; then twice as many if it stays cheaper."""


class FeedbackSwitch:
    """Compares the costs of new tuples with and without feedback.

    >>> times = iter([0.0, 2.0, 5.0, 6.0])
    >>> switch = FeedbackSwitch(lambda: next(times))
    >>> for _ in range(2):
    ...     switch.begin()
    ...     switch.is_on_after(TRIAL_TUPLES)
    False
    False
    """

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        """Start with the feedback on."""
        self._clock = clock
        self._began = 0.0
        self._on = True
        self._tuples, self._seconds = 0, 0.0
        self._costs: dict[bool, float] = {}
        self._stay = 1
        self._next_stay = LEAST_STAY
        self.turns = 0
        """How often it was turned on or off."""

    def begin(self) -> None:
        """A block of new tuples begins."""
        self._began = self._clock()

    def is_on_after(self, tuples: int) -> bool:
        """Whether feedback is on from now; a block of that many new tuples has ended."""
        self._tuples += tuples
        self._seconds += self._clock() - self._began
        if self._tuples < self._stay * TRIAL_TUPLES:
            return self._on
        self._costs[self._on] = self._seconds / self._tuples
        self._tuples, self._seconds = 0, 0.0
        other = self._costs.get(not self._on)
        if self._stay > 1 or other is None:
            # Try the other one.
            self._on, self._stay = not self._on, 1
            self.turns += 1
            return self._on
        is_tried_one_cheaper = self._costs[self._on] < other
        if is_tried_one_cheaper:
            self._next_stay = LEAST_STAY
        else:
            self._on = not self._on
            self.turns += 1
        self._stay, self._next_stay = self._next_stay, min(MOST_STAY, 2 * self._next_stay)
        return self._on
