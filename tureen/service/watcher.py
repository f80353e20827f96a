"""Notification of pushes and commits: one task polls for all followers and waiting requests, which need no threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tureen.errors import EngineFailed, WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.pot_progress import PotProgress
from tureen.service.deadlines import Deadlines
from tureen.soup.waiting import WAIT_SECONDS

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.004
"""The interval at which the pot is checked for pushes and commits; a check takes microseconds."""

CALLS_PER_THREAD = 16
"""The most calls of followers that one thread gets at a time."""

Result = TypeVar("Result")


class SharedThreads:
    """Runs calls of many tasks in a few threads.

    A push wakes all followers. If each of them asked for a thread, most of the time would be spent on handovers between
    the event loop and the threads. So the calls that come while others run are handed over together.
    """

    def __init__(self) -> None:
        """Start without calls."""
        self._queued: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run a call in a thread, and return its result."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queued.append((future, call))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._hand_over())
        return await future

    async def _hand_over(self) -> None:
        while self._queued:
            queued, self._queued = self._queued, []
            groups = [queued[start : start + CALLS_PER_THREAD] for start in range(0, len(queued), CALLS_PER_THREAD)]
            await asyncio.gather(*(self._run_group(group) for group in groups))

    async def _run_group(self, group: Sequence[tuple[asyncio.Future[Any], Callable[[], Any]]]) -> None:
        outcomes = await asyncio.to_thread(lambda: [_outcome(call) for _, call in group])
        for (future, _), outcome in zip(group, outcomes, strict=True):
            if future.done():
                continue  # the connection was closed in the meantime
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def _outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error."""
    try:
        return call()
    except Exception as error:
        return error


class ProgressWatcher:
    """Polls for pushes and commits and wakes all waiting tasks."""

    def __init__(
        self,
        progress: PotProgress,
        on_commit: Callable[[], None],
        clauses_with_changes: Callable[[], Collection[Hashable] | None],
    ) -> None:
        """Watch a pot; call `on_commit` in the event loop after each commit.

        `clauses_with_changes` returns the clauses whose followers are woken; None for all of them.
        """
        self._progress, self._on_commit = progress, on_commit
        self._clauses_with_changes = clauses_with_changes
        self.version = 0
        self.closing = False
        self.threads = SharedThreads()
        self._waiters: dict[asyncio.Future[None], Hashable] = {}
        """The clause that each waits for; None for any push or commit."""
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
            await asyncio.sleep(POLL_SECONDS)
            now = self._progress.now()
            if now != last:
                self.version += 1
                if now.token != last.token:
                    self._on_commit()
                last = now
                self._wake(await self._find_clauses())

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
        try:
            yield
        finally:
            self._followers[clause] -= 1
            if not self._followers[clause]:
                del self._followers[clause]
                self._matched.pop(clause, None)

    def _has_news(self, version: int, clause: Hashable, matches: int) -> bool:
        if clause is None:
            return self.version != version
        return max(self._matched.get(clause, 0), self._matched.get(None, 0)) > matches

    def _wake(self, clauses: Collection[Hashable] | None = None) -> None:
        for waiter, clause in list(self._waiters.items()):
            if clause is None or clauses is None or clause in clauses:
                del self._waiters[waiter]
                if not waiter.done():
                    waiter.set_result(None)

    async def wait_for_news(self, version: int, seconds: float, clause: Hashable = None, matches: int = 0) -> bool:
        """Wait for a push or a commit after `version`; False if there was none in time, or the server stops.

        With a clause, which must be one that is followed, wait for tuples that may satisfy it, found after `matches`.
        """
        if not self._has_news(version, clause, matches) and not self.closing:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters[waiter] = clause
            try:
                await self._deadlines.wait(waiter, seconds)
            finally:
                self._waiters.pop(waiter, None)
        return self._has_news(version, clause, matches) and not self.closing

    def close(self) -> None:
        """Stop polling and wake all waiting tasks."""
        self.closing = True
        self._wake()


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
