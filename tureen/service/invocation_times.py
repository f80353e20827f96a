"""How long the invocations of each query take, which decides whether they are computed in the event loop.

The processor time decides, because in a busy process everything takes long by the wall clock. But reading the processor
time of a thread is a system call after which the kernel may run another process, while this one holds the interpreter's
lock. So the wall clock, which is read without a system call, is enough as long as it shows a short time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

INLINE_SECONDS = 0.003
"""A query whose recent invocations took less processor time is invoked in the event loop, without a thread."""

MAX_TIMED_HANDLES = 100_000
"""The number of handles whose invocation times are kept."""


class InvocationTimes:
    """The recent invocation times of many queries."""

    def __init__(self) -> None:
        """No query was invoked yet."""
        self._seconds: dict[str, float] = {}
        self._measured: set[str] = set()
        """The handles whose processor time is read, because their last invocation took long by the wall clock."""

    def is_quick(self, handle: str) -> bool | None:
        """Whether invocations of a query take little time; None if it was not invoked yet."""
        seconds = self._seconds.get(handle)
        return None if seconds is None else seconds < INLINE_SECONDS

    def timed(self, handle: str, invoke: Callable[[], Result]) -> Result:
        """Invoke a query and record the time."""
        measured = handle in self._measured
        read = time.thread_time if measured else time.perf_counter
        started_at = read()
        result = invoke()
        self._record(handle, read() - started_at, measured=measured)
        return result

    def _record(self, handle: str, seconds: float, *, measured: bool) -> None:
        if len(self._seconds) >= MAX_TIMED_HANDLES:
            self._seconds.clear()
            self._measured.clear()
        if seconds < INLINE_SECONDS:
            self._measured.discard(handle)
        elif not measured:
            self._measured.add(handle)
            if handle in self._seconds:
                return  # perhaps the thread only waited: the next invocation is measured
        # A moving average: a small outlier does not send a query to a thread, a large one does for a while.
        self._seconds[handle] = (seconds + self._seconds.get(handle, seconds)) / 2
