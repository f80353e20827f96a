"""Isolated DuckDB connections, and the memory and time limits of one evaluation."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tureen.deferred_import import DeferredModule
from tureen.errors import LimitExceeded

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = DeferredModule("duckdb")

LONGEST_TEXT = 10_000
"""The maximum number of characters that lpad, rpad, repeat and space create, and that replace and hex add to a text.

It keeps one query from exhausting the memory of all.
"""

TEXT_MADE = f"error('a text of more than {LONGEST_TEXT} characters"
"""A part of the SQL of each function whose result can be longer than its arguments."""

MEMORY_LIMIT = 2 << 30
"""The memory limit of one evaluation in bytes, for sorting, grouping and its result."""

TIME_LIMIT = 60.0
"""The time limit of one evaluation in seconds."""

CHECK_INTERVAL = 0.25
"""The seconds between two checks for expired evaluations."""


_connections: WeakSet[Any] = WeakSet()
_held: list[Any] = []
"""All connections while the process forks. A child deletes what is local to other threads, and deleting a connection
crashes it: Spark's JVM, which is started by a fork, would not start."""

os.register_at_fork(
    before=lambda: _held.extend(_connections),
    after_in_parent=lambda: _held.clear(),
    after_in_child=lambda: _connections.clear(),
)


@atexit.register
def _close_connections() -> None:
    """Close what is idle: a connection that keeps Python objects cannot be destroyed after them."""
    for connection in list(_connections):
        with suppress(duckdb.Error):
            connection.close()


def connect() -> Any:
    """An in-memory DuckDB with one thread, limited memory, and no access to files."""
    connection = duckdb.connect(
        ":memory:", config={"threads": 1, "memory_limit": f"{MEMORY_LIMIT}B", "temp_directory": ""}
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    _connections.add(connection)
    return connection


@contextmanager
def limited(connection: Any, subject: str) -> Iterator[float]:
    """Run an evaluation within the limits and give its deadline; raises LimitExceeded with the `subject`."""
    running = _Running(connection, time.monotonic() + TIME_LIMIT)
    _watchdog.add(running)
    try:
        yield running.deadline
    except duckdb.OutOfMemoryException as error:
        raise LimitExceeded(
            f"{subject} needs more than {MEMORY_LIMIT >> 20:,} MiB of memory", hint="select fewer rows or shorter texts"
        ) from error
    except duckdb.InterruptException as error:
        if not running.expired:
            raise
        raise LimitExceeded(
            f"{subject} took more than {TIME_LIMIT:g} seconds", hint="select fewer rows or simplify it"
        ) from error
    finally:
        _watchdog.remove(running)


@dataclass(eq=False, slots=True)
class _Running:
    """A running evaluation."""

    connection: Any
    deadline: float
    expired: bool = False


class _Watchdog:
    """A thread that interrupts the process's evaluations when they exceed the time limit."""

    def __init__(self) -> None:
        self._running: set[_Running] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._has_work = threading.Event()

    def add(self, running: _Running) -> None:
        with self._lock:
            self._running.add(running)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tureen-evaluation", daemon=True)
                self._thread.start()
        if not self._has_work.is_set():
            self._has_work.set()

    def remove(self, running: _Running) -> None:
        # Under the lock, so that an interrupt cannot hit the next evaluation of this connection.
        with self._lock:
            self._running.discard(running)

    def _run(self) -> None:
        while True:
            self._has_work.wait()
            time.sleep(CHECK_INTERVAL)
            self._interrupt(time.monotonic())

    def _interrupt(self, now: float) -> None:
        with self._lock:
            for running in self._running:
                if now > running.deadline:
                    running.expired = True
                    running.connection.interrupt()
            if not self._running:
                self._has_work.clear()


_watchdog = _Watchdog()


def _after_fork() -> None:
    """Replace the watchdog, since a child process has none of its parent's threads."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_after_fork)
