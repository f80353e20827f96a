"""The order of an inner join: which side is joined next.

A pure decision, made again after each side was joined, from the number of rows so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class SideStatistics(NamedTuple):
    """A side that is not joined yet: its rows, and the comparisons with the sides that are."""

    side: int
    rows: int
    equalities: int = 0
    inequalities: int = 0


def first_side(sides: Sequence[SideStatistics]) -> int:
    """The side with the fewest rows; of equal ones the first in FROM."""
    return min(sides, key=lambda side: (side.rows, side.side)).side


def next_side(sides: Sequence[SideStatistics]) -> int:
    """The side with the least expected fan-out: by an equality, else by an inequality, else all combinations."""
    return min(sides, key=lambda side: (side.equalities == 0, side.inequalities == 0, side.rows, side.side)).side
