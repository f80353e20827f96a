"""Whether what came out is what a case expects."""

from __future__ import annotations

from tests.cases.casefile import Expected, Failure
from tests.cases.tables import Table, differences

LAST_DIGITS = 1e-12
"""By how much a DOUBLE aggregate may differ: the order of summing is the engine's own affair."""


def judge(found: Expected, expected: Expected, *, tolerance: float = 0.0) -> list[str]:
    """What is not as expected: the error, names and types, or rows in their order."""
    if isinstance(found, Failure) or isinstance(expected, Failure):
        return [] if found == expected else [f"{found}, not {expected}"]
    assert isinstance(found, Table)
    if found.columns != expected.columns:
        return [f"columns {found.lines()[0]}, not {expected.lines()[0]}"]
    return differences(found, expected, tolerance=tolerance)
