"""Pots that are open when the program ends: they are closed before Python ends.

The threads of an engine are often in C++, such as DuckDB's. Python ends threads that are left by unwinding their stack,
at which C++ aborts the process. So a thread waits for the end of the main thread and closes what is open; Python waits
for it.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - cannot be imported any more when the main thread has ended
import logging
import os
import threading
from typing import Protocol

log = logging.getLogger("tureen")


class Closable(Protocol):
    """What can be closed, also if it is closed already."""

    def close(self) -> None:
        """Close it."""


_open: set[Closable] = set()
_lock = threading.Lock()
_waiting: threading.Thread | None = None

# A forked process has none of the threads, and must not release what belongs to its parent.
os.register_at_fork(after_in_child=_open.clear)


def close_at_exit(pot: Closable) -> None:
    """Close a pot when the program ends, unless it is `forget`ten before."""
    global _waiting
    with _lock:
        _open.add(pot)
        if _waiting is None or not _waiting.is_alive():
            _waiting = threading.Thread(target=_close_at_exit, name="tureen-exit", daemon=False)
            _waiting.start()


def forget(pot: Closable) -> None:
    """Note that a pot was closed."""
    with _lock:
        _open.discard(pot)


def _close_at_exit() -> None:
    threading.main_thread().join()
    with _lock:
        pots = list(_open)
    for pot in pots:
        try:
            pot.close()
        except Exception:
            log.exception("a pot could not be closed at the end of the program")
