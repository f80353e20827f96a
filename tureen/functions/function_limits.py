"""The limits of a call of a user function."""

from __future__ import annotations

import os

MEMORY = 2 << 30
"""The memory limit of a process that calls user functions, in bytes."""

SECONDS = 5.0
"""The time limit of one call in seconds, unless TUREEN_FUNCTION_SECONDS is set."""

START_SECONDS = 20.0
"""The seconds within which a process must have started and loaded a function."""


def call_seconds() -> float:
    """The time limit of one call in seconds."""
    return float(os.environ.get("TUREEN_FUNCTION_SECONDS") or SECONDS)
