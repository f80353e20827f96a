"""Shared reads: what many followers of one query wait for is read and encoded once.

Followers that have read the same changes are at the same position. The next push wakes all of them, and the first one
reads and encodes for all. A follower that is slow holds only its own reference to what the others have sent already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from functools import cached_property
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from tureen.service.connections import encode_chunk
from tureen.service.deadlines import CLOCK_RESOLUTION
from tureen.soup.change_batches import ChangeBatch

Result = TypeVar("Result")

MAX_SHARED_CHANGES = 512
"""A batch of more changes is encoded for each follower by itself, part by part, so that no follower holds all of it."""


class RunCall(Protocol):
    """Runs a call in a thread."""

    def __call__(self, call: Callable[[], Result], /) -> Awaitable[Result]:
        """The result of the call."""


Encode = Callable[[ChangeBatch], Iterator[bytes]]
"""Encodes a batch as server-sent events, in parts."""


class SharedBatch:
    """Changes that several followers send."""

    def __init__(self, changes: ChangeBatch, encode: Encode, read_at: float) -> None:
        """Encode the changes, unless they are too many to be kept."""
        self.changes, self.read_at = changes, read_at
        self.position = changes.position()
        """The position after the changes."""
        is_small = len(changes) <= MAX_SHARED_CHANGES
        self.parts = tuple(encode(changes)) if is_small else None
        """The encoded changes; None if each follower encodes them by itself."""

    @cached_property
    def chunk(self) -> bytes:
        """The encoded changes as a chunk of an HTTP response."""
        return encode_chunk(b"".join(self.parts or ()))

    @property
    def due(self) -> float | None:
        """When time alone may change what is read; None if it does not."""
        return None if self.changes.due is None else self.read_at + self.changes.due


class SharedReads:
    """The reads of all followers of a server."""

    def __init__(self, run: RunCall, encode: Encode, clock: Callable[[], float] = time.monotonic) -> None:
        """Read in threads by `run`."""
        self._run, self._encode, self._clock = run, encode, clock
        self._running: dict[Hashable, asyncio.Task[SharedBatch]] = {}
        self._requested: dict[Hashable, list[Callable[[SharedBatch | None], None]]] = {}
        """What is called when a running read ends."""
        self._read: WeakValueDictionary[Hashable, SharedBatch] = WeakValueDictionary()

    async def read(self, key: Hashable, read: Callable[[], ChangeBatch]) -> SharedBatch:
        """Read changes, once for all followers with the same key.

        The key must tell what is read, from which position, and after which push or commit; None shares nothing.
        """
        if key is None:
            return await self._run_read(read)
        batch = self._find(key)
        # A follower that is cancelled does not cancel the read of the others.
        return batch if batch is not None else await asyncio.shield(self._start(key, read))

    def request(
        self, key: Hashable, read: Callable[[], ChangeBatch], then: Callable[[SharedBatch | None], None]
    ) -> None:
        """Read as `read` does, and call `then` with the changes; with None if they cannot be read."""
        batch = self._find(key)
        if batch is not None:
            then(batch)
            return
        self._start(key, read)
        self._requested.setdefault(key, []).append(then)

    def _find(self, key: Hashable) -> SharedBatch | None:
        """What was read, if somebody still has it."""
        batch = self._read.get(key)
        # Of answers that change as time passes, what was read a while ago is not what a follower wants now.
        is_current = batch is not None and (batch.due is None or self._clock() + CLOCK_RESOLUTION < batch.due)
        return batch if is_current else None

    def _start(self, key: Hashable, read: Callable[[], ChangeBatch]) -> asyncio.Task[SharedBatch]:
        """The task that reads, which may be running already."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._run_read(read))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return task

    async def encode_parts(self, batch: SharedBatch) -> AsyncIterator[bytes]:
        """Encode a batch in threads, for one follower."""
        remaining = self._encode(batch.changes)
        while encoded := await self._run(lambda: next(remaining, None)):
            yield encoded

    def batch(self, read: Callable[[], ChangeBatch]) -> SharedBatch:
        """Read changes in this thread."""
        return SharedBatch(read(), self._encode, self._clock())

    async def _run_read(self, read: Callable[[], ChangeBatch]) -> SharedBatch:
        return await self._run(lambda: self.batch(read))

    def _finish(self, key: Hashable, task: asyncio.Task[SharedBatch]) -> None:
        del self._running[key]
        batch = None if task.cancelled() or task.exception() is not None else task.result()
        if batch is not None:
            self._read[key] = batch
        for then in self._requested.pop(key, ()):
            then(batch)
