"""The niceness of Spark's processes, as of the command `nice`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from tureen.errors import TureenError, shown

MAX_NICE = 19


def check_nice(value: object) -> int:
    """Raise unless the value is a niceness."""
    if type(value) is not int or not 0 <= value <= MAX_NICE:
        raise TureenError(f"nice must be an integer from 0 to {MAX_NICE}, got {shown(value)}")
    return value


def lower_priority(process: int, nice: int) -> None:
    """Increase the niceness of a process and all its descendants; on Linux only, where each thread has a priority.

    Threads and processes that they start later inherit it.
    """
    if not nice or sys.platform != "linux":
        return
    level = min(os.nice(0) + nice, MAX_NICE)
    for member in _with_descendants(process):
        for thread in Path(f"/proc/{member}/task").glob("*"):
            # A thread may have ended, and a process may be another user's.
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(thread.name), level)


def _with_descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may contain any characters; the state and the parent follow it.
            parent = int(stat.read_text(errors="replace").rpartition(") ")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    processes = [process]
    for member in processes:
        processes += children.get(member, [])
    return processes
