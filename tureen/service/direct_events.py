"""A fast path for followers: the events of many are written to their connections without waking their tasks.

A task that is woken resumes a dozen coroutines, writes, and waits again, which takes longer than all else that a push
costs a follower. Most followers are at the position of many others, whose next events are read and encoded once. If a
follower's connection takes them at once, they are written where the news is handled, and its task waits on. In all
other cases the task is woken, as without this fast path: if the events are many, depend on the time or cannot be read,
if the connection is not read, or if access has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from tureen.errors import TureenError
from tureen.service.shared_reads import SharedBatch, SharedReads
from tureen.service.wake_queue import wake
from tureen.service.watcher import ProgressWatcher
from tureen.soup.change_batches import ChangeBatch

DirectWrite = Callable[[bytes], bool]
"""Writes a chunk of a response; False, and nothing is written, if the connection does not take it at once."""


@dataclass(slots=True)
class FollowerState:
    """How far a follower is: what it has sent, and the news that it knows."""

    batch: SharedBatch
    version: int
    matches: int
    last_sent_at: float
    last_change_at: float

    def note_sent(self) -> None:
        """Note that changes were sent now."""
        self.last_sent_at = self.last_change_at = time.monotonic()


class DirectEvents:
    """Sends the events of one follower while its task waits."""

    __slots__ = (
        "_check_access",
        "_clause",
        "_on_sent",
        "_read_changes",
        "_reads",
        "_shared",
        "_state",
        "_watcher",
        "_write",
    )

    def __init__(
        self,
        watcher: ProgressWatcher,
        reads: SharedReads,
        state: FollowerState,
        read_changes: Callable[[str | None], ChangeBatch],
        check_access: Callable[[], None],
        write: DirectWrite,
        on_sent: Callable[[int], None],
        *,
        clause: Hashable,
        shared: Hashable,
    ) -> None:
        """Send what `Follower` would send; `state` is changed as it is there."""
        self._watcher, self._reads, self._state = watcher, reads, state
        self._read_changes, self._check_access, self._write, self._on_sent = read_changes, check_access, write, on_sent
        self._clause, self._shared = clause, shared

    def on_news(self, waiter: asyncio.Future[None]) -> None:
        """Read what is new, together with other followers, and send it."""
        if waiter.done():
            return
        watcher, position = self._watcher, self._state.batch.position
        if watcher.closing:
            wake(waiter)
            return
        version, matches = watcher.version, watcher.matches
        key = (self._shared, position, version, matches)
        self._reads.request(key, partial(self._read_changes, position), partial(self._queue, waiter, version, matches))

    def _queue(self, waiter: asyncio.Future[None], version: int, matches: int, batch: SharedBatch | None) -> None:
        """Send a batch when it is this follower's turn, which comes before news of others is read."""
        self._watcher.queue.add((partial(self._deliver, waiter, version, matches, batch),), first=True)

    def _deliver(self, waiter: asyncio.Future[None], version: int, matches: int, batch: SharedBatch | None) -> None:
        if waiter.done():
            return
        watcher, state = self._watcher, self._state
        if batch is None or watcher.closing or not self._is_sent(batch):
            # Its task reads again from the same position.
            wake(waiter)
            return
        state.batch, state.version, state.matches = batch, version, matches
        if watcher.has_news(version, self._clause, matches):
            watcher.queue.add((partial(self.on_news, waiter),))
        else:
            watcher.stay(waiter, self._clause, self.on_news)

    def _is_sent(self, batch: SharedBatch) -> bool:
        """Whether all of a batch was written; otherwise, nothing was."""
        if batch.changes.due is not None or batch.parts is None or len(batch.parts) > 1:
            # The task sends several parts one after the other, as its connection takes them.
            return False
        try:
            self._check_access()
        except TureenError:
            return False
        changes = len(batch.changes)
        if not changes:
            return True
        if not self._write(batch.chunk):
            return False
        self._on_sent(changes)
        self._state.note_sent()
        return True
