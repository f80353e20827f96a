"""Niceness: how far Spark stands back for others who want the processor, as the command `nice` counts."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from tureen.errors import TureenError

MOST = 19


def check_nice(value: object) -> int:
    """Refuse what is no niceness."""
    if type(value) is not int or not 0 <= value <= MOST:
        raise TureenError(f"nice is {ascii(value)[:40]}", hint=f"a number from 0 to {MOST}")
    return value


def lower_priority(process: int, nice: int) -> None:
    """Make a process and all its descendants nicer by that much; on Linux, where every thread has its own priority.

    What they start later inherits it.
    """
    if not nice or sys.platform != "linux":
        return
    level = min(os.nice(0) + nice, MOST)
    for member in _with_descendants(process):
        for task in Path(f"/proc/{member}/task").glob("*"):
            # A thread may end, and a process be another user's.
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(task.name), level)


def _with_descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may have any characters; the state and the parent follow it.
            parent = int(stat.read_text(errors="replace").rpartition(") ")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [process]
    for member in found:
        found += children.get(member, [])
    return found
