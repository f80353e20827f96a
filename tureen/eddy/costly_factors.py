"""Where factors that call user functions are evaluated: in which order, and before or after a join (CACQ §4.2).

Such a factor costs thousands of times as much as a comparison, so it comes after all others of its clause. Among
several, those with the lowest rank come first. A factor over one input of a join is evaluated before a join that
multiplies its tuples, and after one that filters them. The decisions are pure functions of what was observed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tureen.eddy.statistics import Profile

JOIN_COST = 100.0
"""The assumed nanoseconds of joining one tuple."""

CALL_COST = 2_000.0
"""The assumed nanoseconds of evaluating a factor with a function, before it was observed."""


@dataclass(frozen=True, slots=True)
class JoinPlacement:
    """The decision about a factor over one input of a join, and what it was decided from."""

    is_before: bool
    nanoseconds: float
    pass_rate: float
    fan_out: float | None

    @property
    def reason(self) -> str:
        """The decision as text.

        >>> place_factor(Profile(0.5, 2000.0), 0.25).reason
        'after the join, which filters: 0.25 joined rows per tuple, 2 µs per tuple, 50 % pass'
        """
        known = f"{self.nanoseconds / 1000:.3g} µs per tuple, {self.pass_rate:.0%} pass".replace("%", " %")
        if self.fan_out is None:
            return f"before the join, whose fan-out is not known yet: {known}"
        rows = f"{self.fan_out:.3g} joined rows per tuple"
        if not self.is_before:
            return f"after the join, which filters: {rows}, {known}"
        return f"before the join, which {'multiplies' if self.fan_out >= 1 else 'filters too little'}: {rows}, {known}"


def rank(profile: Profile) -> float:
    """The cost per rejected tuple: the lower, the earlier a factor is evaluated.

    >>> rank(Profile(0.5, 1000.0)), rank(Profile(1.0, 1000.0))
    (2000.0, inf)
    """
    rejected = 1 - profile.pass_rate
    return profile.cost / rejected if rejected > 0 else float("inf")


def place_factor(profile: Profile, fan_out: float | None) -> JoinPlacement:
    """Whether a factor over one input is evaluated before its join, by the cost of both for one tuple.

    Before, the factor is evaluated for each tuple and those that pass are joined. After, each tuple is joined, and the
    factor is evaluated for those with a partner.

    >>> place_factor(Profile(0.5, 2000.0), 3.0).is_before, place_factor(Profile(0.5, 2000.0), 0.1).is_before
    (True, False)
    """
    if fan_out is None:
        return JoinPlacement(True, profile.cost, profile.pass_rate, None)
    before = profile.cost + profile.pass_rate * JOIN_COST
    after = JOIN_COST + min(fan_out, 1.0) * profile.cost
    return JoinPlacement(before <= after, profile.cost, profile.pass_rate, fan_out)
