"""Expressions in DuckDB: connections that have no way out of the process, and what one evaluation may take of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from tureen.errors import LimitExceeded

LONGEST_TEXT = 10_000
"""The most characters that lpad, rpad, repeat and space make, and that replace and hex add to a text.

One query shall not fill the memory of all.
"""

TEXT_MADE = f"error('a text of more than {LONGEST_TEXT} characters"
"""What is in the SQL of each function that makes a text of more characters than its arguments have."""

MEMORY_LIMIT = 2 << 30
"""The most bytes of memory of one evaluation: what is sorted, grouped or given back."""

TIME_LIMIT = 60.0
"""The most seconds of one evaluation."""

LOOK_EVERY = 0.25
"""How often it is looked whether an evaluation takes too long, in seconds."""


def connect() -> Any:
    """A DuckDB in memory, with one thread, bounded memory, and no file of its own or of others."""
    connection = duckdb.connect(
        ":memory:", config={"threads": 1, "memory_limit": f"{MEMORY_LIMIT}B", "temp_directory": ""}
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    return connection


@contextmanager
def limited(connection: Any, what: str) -> Iterator[None]:
    """Let a connection evaluate within the limits; beyond them, raise a LimitExceeded that says what exceeded which."""
    running = _Running(connection, time.monotonic() + TIME_LIMIT)
    _watch.add(running)
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise LimitExceeded(
            f"{what} needs more than {MEMORY_LIMIT >> 20:,} MiB of memory", hint="ask for fewer rows or shorter texts"
        ) from error
    except duckdb.InterruptException as error:
        if not running.expired:
            raise
        raise LimitExceeded(
            f"{what} took more than {TIME_LIMIT:g} seconds", hint="ask for fewer rows, or make it simpler"
        ) from error
    finally:
        _watch.remove(running)


@dataclass(eq=False, slots=True)
class _Running:
    """An evaluation that is under way."""

    connection: Any
    deadline: float
    expired: bool = False


class _Watch:
    """One thread for all evaluations of a process, which interrupts those that take too long."""

    def __init__(self) -> None:
        self._running: set[_Running] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()

    def add(self, running: _Running) -> None:
        with self._lock:
            self._running.add(running)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="tureen-evaluation", daemon=True)
                self._thread.start()
        if not self._wanted.is_set():
            self._wanted.set()

    def remove(self, running: _Running) -> None:
        # Under the lock: when it is released, nobody will interrupt what this connection does next.
        with self._lock:
            self._running.discard(running)

    def _watch(self) -> None:
        while True:
            self._wanted.wait()
            time.sleep(LOOK_EVERY)
            self._interrupt(time.monotonic())

    def _interrupt(self, now: float) -> None:
        with self._lock:
            for running in self._running:
                if now > running.deadline:
                    running.expired = True
                    running.connection.interrupt()
            if not self._running:
                self._wanted.clear()


_watch = _Watch()


def _after_fork() -> None:
    """A child has none of its parent's threads."""
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_after_fork)
