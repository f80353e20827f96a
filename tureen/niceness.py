"""Niceness: how far Spark stands back for others who want the processor, as the command `nice` counts."""

from __future__ import annotations

import os
import sys
import threading

from tureen.errors import TureenError

MOST = 19


def check_nice(value: object) -> int:
    """Refuse what is no niceness."""
    if type(value) is not int or not 0 <= value <= MOST:
        raise TureenError(f"nice is {ascii(value)[:40]}", hint=f"a number from 0 to {MOST}")
    return value


def stand_back(nice: int) -> None:
    """Make this thread nicer, and with it all that it starts; on Linux, where threads have priorities of their own."""
    if nice and sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(os.nice(0) + nice, MOST))
