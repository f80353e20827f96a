"""Comparison of an outcome with the expectation of a case."""

from __future__ import annotations

from tests.cases.casefile import Expected, Failure
from tests.cases.tables import Table, differences

LAST_DIGITS = 1e-12
"""The relative tolerance of DOUBLE aggregates: the order of summation is not specified."""


def judge(outcome: Expected, expected: Expected, *, tolerance: float = 0.0) -> list[str]:
    """The differences from the expectation: error, names and types, or rows in order."""
    if isinstance(outcome, Failure) or isinstance(expected, Failure):
        return [] if outcome == expected else [f"{outcome}, not {expected}"]
    assert isinstance(outcome, Table)
    if outcome.columns != expected.columns:
        return [f"columns {outcome.lines()[0]}, not {expected.lines()[0]}"]
    return differences(outcome, expected, tolerance=tolerance)
