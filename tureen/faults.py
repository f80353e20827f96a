"""Named places where a test may end the process, as a crash would.

`TUREEN_CRASH=<place>=<token file>` kills the process that reaches the place and finds the token file,
which it removes first, so that a crash happens once. Without the variable a place costs one
look at a constant.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_PLACE, _, _TOKEN = os.environ.get("TUREEN_CRASH", "").partition("=")


def crash_point(place: str) -> None:
    """Die here, as by SIGKILL, if a test asked for it."""
    if place != _PLACE:
        return
    try:
        Path(_TOKEN).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
