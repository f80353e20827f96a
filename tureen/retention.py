"""How much of a stream is kept: all of it, what is not older than a duration, or what is needed."""

from __future__ import annotations

from typing import Final, Literal

NEEDED: Final = "needed"

Retain = int | Literal["needed"] | None
"""A duration in microseconds, NEEDED, or None for everything."""
