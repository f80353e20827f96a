"""Named places where a test may end the process, as a crash would, or hold it up.

With `TUREEN_CRASH_DIR` set, a process that reaches a place and finds a file of that name in the directory removes the
file and dies, so that a crash happens once. A file `<place>.hold` delays every process that reaches the place by the
number of seconds in it, so that a short window stays open. Without the variable a place costs one look at a constant.
"""

from __future__ import annotations

import os
import signal
import time
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


def hold_point(place: str) -> None:
    """Delay the process here for as long as a test asked for."""
    if _ARMED is None:
        return
    try:
        seconds = float(Path(_ARMED, f"{place}.hold").read_text())
    except FileNotFoundError:
        return
    time.sleep(seconds)
