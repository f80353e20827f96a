"""Worker processes for user functions: started when needed, reused, and killed when a call does not end.

A function runs in another process because nothing else stops it for certain: an exception that is set in a thread waits
for the end of a sleep, and a regular expression that backtracks holds the interpreter's lock (docs/decisions/0034).
"""

from __future__ import annotations

import atexit
import mmap
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import pyarrow as pa

from tureen.functions.function_limits import MEMORY, START_SECONDS, call_seconds
from tureen.functions.function_worker import LOADING, message, read_message, shown_call
from tureen.functions.user_function import UserFunction

MOST_WORKERS = max(4, 2 * (os.cpu_count() or 1))
"""The maximum number of worker processes of one process."""


class WorkerFailed(Exception):
    """A function raised, or cannot be loaded; the message is for the user."""


class CallExpired(Exception):
    """A call did not end in time.

    `row` is the index of its row, None where the whole batch is one call. `seconds` is the limit of the call, None if
    the evaluation took all of its time.
    """

    def __init__(self, row: int | None, seconds: float | None) -> None:
        super().__init__()
        self.row, self.seconds = row, seconds


@dataclass(frozen=True, slots=True)
class Called:
    """The results of a batch of calls, and the seconds that they took."""

    results: pa.Array
    seconds: float


class Worker:
    """A worker process."""

    def __init__(self) -> None:
        """Start it."""
        with tempfile.TemporaryFile() as file:
            file.truncate(8)
            self._progress = mmap.mmap(file.fileno(), 8)
            paths = [os.path.abspath(path) for path in sys.path]
            program = [sys.executable, "-P", "-m", "tureen.functions.function_worker"]
            self._process = subprocess.Popen(
                [*program, str(file.fileno()), str(MEMORY)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[file.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))},
            )
        self._progress_row = memoryview(self._progress).cast("q")
        self._known: set[str] = set()

    def call(self, function: UserFunction, arguments: pa.RecordBatch | None, deadline: float) -> Called | None:
        """The results of a function; without arguments, it is only loaded."""
        header = {"digest": function.digest, "name": function.name}
        if function.digest not in self._known:
            header["definition"] = function.text
        self._progress_row[0] = LOADING
        try:
            self._send(message(header, arguments), deadline)
            self._wait(deadline)
            reply = read_message(cast(BinaryIO, self._process.stdout))
        except BrokenPipeError:
            reply = None
        if reply is None:
            code = self._process.wait()
            calls = "" if arguments is None or self.row < 0 else f" in {_shown_row(function, arguments, self.row)}"
            raise WorkerFailed(f"function {function.name} ended its process, with exit code {code}{calls}")
        content, batch = reply
        if not content["ok"]:
            raise WorkerFailed(content["error"])
        self._known.add(function.digest)
        return None if batch is None else Called(batch.column(0), content["seconds"])

    def _send(self, content: bytes, deadline: float) -> None:
        """Write a message; the worker reads it at once, as it is idle."""
        stream = cast(BinaryIO, self._process.stdin)
        os.set_blocking(stream.fileno(), False)
        rest = memoryview(content)
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_WRITE)
            while len(rest):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise CallExpired(None, None)
                rest = rest[os.write(stream.fileno(), rest[: 1 << 20]) :]

    def _wait(self, deadline: float) -> None:
        """Return when there is a reply; raises CallExpired when loading or one call takes too long."""
        row, since = LOADING, time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(cast(BinaryIO, self._process.stdout), selectors.EVENT_READ)
            while not selector.select(min(call_seconds() / 4, max(0.0, deadline - time.monotonic()))):
                now, current = time.monotonic(), self.row
                if current != row:
                    row, since = current, now
                limit = START_SECONDS if row == LOADING else call_seconds()
                if now >= deadline or now >= since + limit:
                    raise CallExpired(row if row >= 0 else None, None if now >= deadline else limit)

    @property
    def row(self) -> int:
        """The index of the row whose call is running."""
        return int(self._progress_row[0])

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close the files of this process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _shown_row(function: UserFunction, arguments: pa.RecordBatch, row: int) -> str:
    return shown_call(function.name, [column[row].as_py() for column in arguments.columns])


@dataclass
class WorkerPool:
    """The workers of this process: each serves one evaluation at a time."""

    _idle: list[Worker] = field(default_factory=list)
    _busy: Counter[str] = field(default_factory=Counter)
    _free: threading.Condition = field(default_factory=threading.Condition)

    def call(self, function: UserFunction, arguments: pa.RecordBatch, deadline: float) -> Called:
        """The results of a function; raises WorkerFailed or CallExpired."""
        worker = self._take(function, deadline)
        returned = False
        try:
            called = worker.call(function, arguments, deadline)
            assert called is not None
            returned = True
        except WorkerFailed:
            returned = worker.is_alive()
            raise
        finally:
            self._give_back(function, worker if returned else None)
            if not returned:
                worker.kill()
        return called

    def check(self, function: UserFunction) -> None:
        """Raise WorkerFailed if a function cannot be loaded by a new process, which otherwise waits for its calls."""
        worker = Worker()
        try:
            worker.call(function, None, time.monotonic() + START_SECONDS)
        except BaseException:
            worker.kill()
            raise
        finally:
            self.retire()
        with self._free:
            self._idle.append(worker)

    def retire(self) -> None:
        """End the idle workers, which may have imported earlier versions of modules."""
        with self._free:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()

    def forget(self) -> None:
        """Forget the workers, in a child process, whose parent uses them."""
        for worker in self._idle:
            worker.forget()

    def _take(self, function: UserFunction, deadline: float) -> Worker:
        """An idle or a new worker. One function occupies at most half of them, so that others are called too."""
        with self._free:
            while self._busy.total() >= MOST_WORKERS or self._busy[function.digest] >= MOST_WORKERS // 2:
                if not self._free.wait(max(0.0, deadline - time.monotonic())):
                    raise CallExpired(None, None)
            self._busy[function.digest] += 1
            worker = self._idle.pop() if self._idle else None
        try:
            return worker if worker is not None and worker.is_alive() else Worker()
        except BaseException:
            self._give_back(function, None)
            raise

    def _give_back(self, function: UserFunction, worker: Worker | None) -> None:
        with self._free:
            self._busy[function.digest] -= 1
            if worker is not None:
                self._idle.append(worker)
            self._free.notify_all()


pool = WorkerPool()


def _after_fork() -> None:
    global pool
    pool.forget()
    pool = WorkerPool()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: pool.retire())
