"""Notification of pushes and commits: one task polls for all followers and waiting requests, which need no threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tureen.errors import EngineFailed, WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.pot_progress import PotProgress
from tureen.service.deadlines import Deadlines
from tureen.service.shared_threads import SharedThreads
from tureen.service.wake_queue import WakeQueue, wake
from tureen.soup.waiting import WAIT_SECONDS

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.004
"""The interval at which the pot is checked for pushes and commits while somebody waits for them."""

IDLE_SECONDS = 0.1
"""The interval while nobody waits. Each check takes a processor 0.1 ms, most of it to start and end the pause."""


class ProgressWatcher:
    """Polls for pushes and commits and wakes all waiting tasks."""

    def __init__(
        self,
        progress: PotProgress,
        on_commit: Callable[[], None],
        clauses_with_changes: Callable[[], Collection[Hashable] | None],
        expects_commit: Callable[[], bool] = lambda: False,
    ) -> None:
        """Watch a pot; call `on_commit` in the event loop after each commit.

        `clauses_with_changes` returns the clauses whose followers are woken; None for all of them. While
        `expects_commit` is True, `on_commit` is called without delay.
        """
        self._progress, self._on_commit, self._expects_commit = progress, on_commit, expects_commit
        self._is_due = asyncio.Event()
        self._clauses_with_changes = clauses_with_changes
        self.version = 0
        self.closing = False
        self.threads = SharedThreads()
        self._waiters: dict[Hashable, dict[asyncio.Future[None], Callable[[], None]]] = {}
        """Those that wait for each clause, in order, and what is called for news; by None, for any push or commit."""
        self.queue = WakeQueue()
        self._deadlines = Deadlines()
        self.matches = 0
        """How often new tuples were matched with the clauses of followers."""
        self._matched: dict[Hashable, int] = {}
        """The last such count that found tuples for a clause; by None, for all clauses."""
        self._followers: Counter[Hashable] = Counter()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start polling in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        last = self._progress.now()
        while not self.closing:
            await self._pause()
            now = self._progress.now()
            if now != last:
                self.version += 1
                if now.token != last.token:
                    self._on_commit()
                last = now
                self._wake(await self._find_clauses())

    async def _pause(self) -> None:
        """Wait until the next check is due."""
        if self._waiters or self._followers or self._expects_commit():
            await asyncio.sleep(POLL_SECONDS)
            return
        self._is_due.clear()
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._is_due.set)
        await self._is_due.wait()
        timer.cancel()

    def hurry(self) -> None:
        """Check without delay from now on: somebody waits, or expects a commit."""
        self._is_due.set()

    async def _find_clauses(self) -> Collection[Hashable] | None:
        """The clauses whose followers are woken; None for all."""
        if not self._followers:
            return ()
        try:
            clauses = await asyncio.to_thread(self._clauses_with_changes)
        except Exception:
            # Each follower reads its changes by itself, and gets the error if it concerns it.
            logger.exception("new tuples could not be matched with the followed queries")
            clauses = None
        # Also for followers that are reading at the moment, and may not see the new tuples.
        self.matches += 1
        self._matched |= dict.fromkeys([None] if clauses is None else clauses, self.matches)
        return clauses

    @contextmanager
    def following(self, clause: Hashable) -> Iterator[None]:
        """Match new tuples with a clause in this block; with None, nothing."""
        if clause is None:
            yield
            return
        self._followers[clause] += 1
        self.hurry()
        try:
            yield
        finally:
            self._followers[clause] -= 1
            if not self._followers[clause]:
                del self._followers[clause]
                self._matched.pop(clause, None)

    def has_news(self, version: int, clause: Hashable, matches: int) -> bool:
        """Whether there was a push or a commit after `version`; of a clause, tuples for it found after `matches`."""
        if clause is None:
            return self.version != version
        return max(self._matched.get(clause, 0), self._matched.get(None, 0)) > matches

    def _wake(self, clauses: Collection[Hashable] | None) -> None:
        """Wake those that wait for these clauses, or for all; a clause with many followers comes last."""
        woken = list(self._waiters) if clauses is None else [None, *clauses]
        groups = [(clause is not None, self._waiters.pop(clause, {})) for clause in woken]
        for _, waiters in sorted(groups, key=lambda group: (group[0], len(group[1]))):
            self.queue.add(waiters.values())

    async def wait_for_news(
        self,
        version: int,
        seconds: float,
        clause: Hashable = None,
        matches: int = 0,
        on_news: Callable[[asyncio.Future[None]], None] = wake,
    ) -> bool:
        """Wait for a push or a commit after `version`; False if there was none in time, or the server stops.

        With a clause, which must be one that is followed, wait for tuples that may satisfy it, found after `matches`.
        For news, `on_news` is called with a future that ends the waiting. If it does not end it, it must call `stay`.
        """
        if not self.has_news(version, clause, matches) and not self.closing:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.stay(waiter, clause, on_news)
            try:
                await self._deadlines.wait(waiter, seconds)
            finally:
                self._forget(waiter, clause)
        return self.has_news(version, clause, matches) and not self.closing

    def stay(
        self, waiter: asyncio.Future[None], clause: Hashable, on_news: Callable[[asyncio.Future[None]], None]
    ) -> None:
        """Let a future wait for the next news of a clause."""
        self._waiters.setdefault(clause, {})[waiter] = partial(on_news, waiter)
        self.hurry()

    def _forget(self, waiter: asyncio.Future[None], clause: Hashable) -> None:
        waiters = self._waiters.get(clause, {})
        waiters.pop(waiter, None)
        if not waiters:
            self._waiters.pop(clause, None)

    def close(self) -> None:
        """Stop polling and wake all waiting tasks."""
        self.closing = True
        self.hurry()
        self.queue.wake_all()
        for waiters in self._waiters.values():
            for waiter in waiters:
                wake(waiter)
        self._waiters.clear()


async def wait_for_positions(
    watcher: ProgressWatcher,
    progress: PotProgress,
    positions: Sequence[str],
    timeout: float | None,
    trouble: Callable[[], str | None],
) -> None:
    """Wait until all positions are reached, or raise WaitTimeout with what `trouble` returns as its detail."""
    pending = [parse_position(position) for position in positions]
    deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)

    def unreached() -> list[Position | PushPosition]:
        return [position for position in pending if not progress.is_reached(position)]

    def remaining() -> float:
        """The seconds until the deadline; raises after it, or if the server stops."""
        if watcher.closing:
            raise EngineFailed("the server is shutting down", hint="retry later; pushed rows are durable")
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise WaitTimeout(
                "the position was not reached in time",
                detail=trouble(),
                hint="increase the timeout; /v1/status shows the progress of the pipeline",
            )
        return seconds

    underived = list(pending)
    while pending:
        version = watcher.version
        pending = await asyncio.to_thread(unreached)
        if pending:
            await watcher.wait_for_news(version, remaining())
    while underived := [position for position in underived if not progress.is_derived(position)]:
        await asyncio.sleep(min(POLL_SECONDS, remaining()))
