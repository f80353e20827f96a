"""Named points at which a test kills or delays the process.

With `TUREEN_CRASH_DIR` set, a process that reaches a point whose name is a file of that directory removes the file and
kills itself, so that it crashes once. A file `<point>.hold` delays every process that reaches the point by the number
of seconds in the file. Without the variable, a point costs a comparison with None.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_ARMED = os.environ.get("TUREEN_CRASH_DIR")
_spared: int | None = None
"""The process that runs the tests, which must not be killed in place of the one that a test has started."""


def spare_this_process() -> None:
    """Let no crash point kill this process; those that it starts are not spared."""
    global _spared
    _spared = os.getpid()


def crash_point(name: str) -> None:
    """Kill the process with SIGKILL if a test armed this point."""
    if _ARMED is None or os.getpid() == _spared:
        return
    try:
        Path(_ARMED, name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def hold_point(name: str) -> None:
    """Delay the process by the number of seconds that a test specified for this point."""
    if _ARMED is None:
        return
    try:
        seconds = float(Path(_ARMED, f"{name}.hold").read_text())
    except FileNotFoundError:
        return
    time.sleep(seconds)
