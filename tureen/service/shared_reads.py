"""Shared reads: what many followers of one query wait for is read and encoded once.

Followers that have read the same changes are at the same position. The next push wakes all of them, and the first one
reads and encodes for all. A follower that is slow holds only its own reference to what the others have sent already.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from tureen.soup.feed import ChangeBatch

Result = TypeVar("Result")

MAX_SHARED_CHANGES = 512
"""A batch of more changes is encoded for each follower by itself, part by part, so that no follower holds all of it."""


class EncodedChanges(NamedTuple):
    """Server-sent events, and the number of them."""

    content: bytes
    events: int


class RunCall(Protocol):
    """Runs a call in a thread."""

    def __call__(self, call: Callable[[], Result], /) -> Awaitable[Result]:
        """The result of the call."""


Encode = Callable[[ChangeBatch], AsyncIterator[EncodedChanges]]
"""Encodes a batch in parts."""


class SharedBatch:
    """Changes that several followers send."""

    def __init__(self, changes: ChangeBatch, encode: Encode) -> None:
        """Encode the changes when the first follower sends them."""
        self.changes = changes
        self._encode = encode
        self._parts: asyncio.Task[list[EncodedChanges]] | None = None

    async def parts(self) -> AsyncIterator[EncodedChanges]:
        """The encoded changes."""
        if len(self.changes) > MAX_SHARED_CHANGES:
            async for part in self._encode(self.changes):
                yield part
            return
        if self._parts is None:
            self._parts = asyncio.create_task(self._all_parts())
        for part in await asyncio.shield(self._parts):
            yield part

    async def _all_parts(self) -> list[EncodedChanges]:
        return [part async for part in self._encode(self.changes)]


class SharedReads:
    """The reads of all followers of a server."""

    def __init__(self, run: RunCall, encode: Encode) -> None:
        """Read in threads by `run`."""
        self._run, self.encode = run, encode
        self._running: dict[Hashable, asyncio.Task[SharedBatch]] = {}
        self._read: WeakValueDictionary[Hashable, SharedBatch] = WeakValueDictionary()

    async def read(self, key: Hashable, read: Callable[[], ChangeBatch]) -> SharedBatch:
        """Read changes, once for all followers with the same key.

        The key must tell what is read, from which position, and after which push or commit; None shares nothing.
        """
        if key is None:
            return await self._batch(read)
        batch = self._read.get(key)
        if batch is not None:
            return batch
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._batch(read))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        # A follower that is cancelled does not cancel the read of the others.
        return await asyncio.shield(task)

    async def _batch(self, read: Callable[[], ChangeBatch]) -> SharedBatch:
        return SharedBatch(await self._run(read), self.encode)

    def _finish(self, key: Hashable, task: asyncio.Task[SharedBatch]) -> None:
        del self._running[key]
        # Of answers that change as time passes, what was read a while ago is not what a follower wants now.
        if not task.cancelled() and task.exception() is None and task.result().changes.due is None:
            self._read[key] = task.result()
