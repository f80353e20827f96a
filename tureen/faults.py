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

CRASH_DIRECTORY = "TUREEN_CRASH_DIR"
"""The environment variable with the directory of armed points."""

_armed = os.environ.get(CRASH_DIRECTORY)
_spared: int | None = None
"""The process that runs the tests, which must not be killed in place of the one that a test has started."""


def use_crash_directory(directory: Path, *, spared: bool = True) -> None:
    """Let tests arm points in a directory: for processes that this one starts from now on, and for it if not spared."""
    global _armed, _spared
    os.environ[CRASH_DIRECTORY] = _armed = str(directory)
    _spared = os.getpid() if spared else None


def crash_point(name: str) -> None:
    """Kill the process with SIGKILL if a test armed this point."""
    if _armed is None or os.getpid() == _spared:
        return
    try:
        Path(_armed, name).unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def hold_point(name: str) -> None:
    """Delay the process by the number of seconds that a test specified for this point."""
    if _armed is None:
        return
    try:
        seconds = float(Path(_armed, f"{name}.hold").read_text())
    except FileNotFoundError:
        return
    time.sleep(seconds)
