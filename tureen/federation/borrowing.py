"""Borrowed replicas: those of queries that are not registered, kept for a while because a query may be repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BORROWED_SECONDS = 60.0
"""How long the replica of an unregistered query is kept."""

MOST_BORROWERS = 4
"""How many unregistered queries may wait for tuples at a time: invocations have few threads."""

BORROW_WAIT = 10.0
"""The most seconds that an unregistered query waits for the tuples of its stream."""


class Borrowing:
    """The replicas that are borrowed, until they are returned."""

    def __init__(self, wait_until_current: Callable[[int, float], None], release: Callable[[int], None]) -> None:
        """Wait for a replica until a deadline of the monotonic clock, and release it when it is returned."""
        self._wait_until_current, self._release = wait_until_current, release
        self._borrowed: list[tuple[float, int]] = []
        self._lock = threading.Lock()
        self._borrowers = threading.BoundedSemaphore(MOST_BORROWERS)

    def borrow(self, claim: Callable[[bool], int]) -> int:
        """A replica that `claim` returns, up to date if its peer answers.

        If others wait already, it is returned as it is, and `claim` is told not to ask peers.
        """
        waits = self._borrowers.acquire(blocking=False)
        try:
            replica = claim(waits)
            with self._lock:
                self._borrowed.append((time.monotonic() + BORROWED_SECONDS, replica))
            if waits:
                self._wait_until_current(replica, time.monotonic() + BORROW_WAIT)
        finally:
            if waits:
                self._borrowers.release()
        return replica

    def return_due(self) -> bool:
        """Release the replicas that were borrowed long enough; returns whether there were any."""
        now = time.monotonic()
        with self._lock:
            due = [replica for end, replica in self._borrowed if end <= now]
            self._borrowed = [entry for entry in self._borrowed if entry[0] > now]
        for replica in due:
            self._release(replica)
        return bool(due)
