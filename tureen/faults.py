"""Named places where a test may end the process, as a crash would.

With `TUREEN_CRASH_DIR` set, a process that reaches a place and finds a file of that name in the directory removes the
file and dies, so that a crash happens once. Without it a place costs one look at a constant.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_ARMED = os.environ.get("TUREEN_CRASH_DIR")


def crash_point(place: str) -> None:
    """Die here, as by SIGKILL, if a test asked for it."""
    if _ARMED is None:
        return
    try:
        Path(_ARMED, place).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
