"""Tureen: thousands of standing SQL queries over live streams, on one shared Spark pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tureen.errors import TureenError

if TYPE_CHECKING:
    from tureen.embedded import Soup, open
    from tureen.results.answer import Answer
    from tureen.standing import StandingQuery

__all__ = ["Answer", "Soup", "StandingQuery", "TureenError", "open"]


def __getattr__(name: str) -> Any:
    """Import the embedded engine when it is first used: Spark's workers do without it."""
    if name not in __all__:
        raise AttributeError(f"module 'tureen' has no attribute '{name}'")
    from tureen import embedded  # noqa: PLC0415

    return getattr(embedded, name)
