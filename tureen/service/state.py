"""What a running server holds: the pot, who may enter, who waits, and what is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime

from tureen.errors import TooMany
from tureen.pot.catalog import Catalog
from tureen.pot.status import count_owned
from tureen.results.answer import Answer
from tureen.service.authorization import Gate, Slots
from tureen.service.metrics import Freshness, Gauges, Metrics
from tureen.service.rendering import Rendered
from tureen.service.settings import Settings
from tureen.service.watcher import Watcher, arrived
from tureen.soup.embedded import Soup

WORKERS = 64
"""The most pushes, registrations and looks that are worked on at a time."""

QUICK = 0.003
"""An answer that took fewer seconds the last times is computed without going to a thread."""

FEW_ROWS = 1_024
"""An answer of no more rows is written where it was computed."""

REMEMBERED = 100_000
"""Of how many handles it is remembered how long they took."""


class Service:
    """One server's state; its methods are called in the loop."""

    def __init__(self, soup: Soup, settings: Settings) -> None:
        """Serve that pot."""
        self.soup, self.settings = soup, settings
        self.catalog = Catalog(soup.path)
        self.gate = Gate(self.catalog, open_to_all=settings.no_auth)
        self.invoking = Slots("invocations", settings.max_invocations)
        self.following = Slots("followers", settings.max_followers)
        self.metrics = Metrics()
        self.freshness = Freshness(self.catalog, self.metrics.freshness)
        self.metrics.registry.register(Gauges(soup.status, soup.batches, self.catalog, self._counts))
        self.watcher = Watcher(self.catalog, self._committed)
        self._invokers = ThreadPoolExecutor(settings.invoke_threads, "tureen-invoke")
        self._workers = ThreadPoolExecutor(WORKERS, "tureen-work")
        self._acting: dict[str, Soup] = {}
        self._took: dict[str, float] = {}

    async def start(self) -> None:
        """Begin to watch, in the running loop."""
        asyncio.get_running_loop().set_default_executor(self._workers)
        self.watcher.start()

    def stop_following(self) -> None:
        """Let all followers and waiting requests go: the server stops."""
        self.watcher.close()

    def close(self) -> None:
        """Let go of everything but the soup, which belongs to whoever opened it."""
        self.watcher.close()
        self._invokers.shutdown(wait=True, cancel_futures=True)
        self._workers.shutdown(wait=True, cancel_futures=True)
        self.gate.note_use(at_once=True)
        self.catalog.close()

    def refused(self, status: int) -> None:
        """Count a request that was refused before it was read."""
        self.metrics.requests.labels("-", "-", str(status)).inc()

    def acting_for(self, principal: str) -> Soup:
        """The pot as a principal sees it."""
        found = self._acting.get(principal)
        if found is None:
            found = self._acting[principal] = self.soup.acting_for(principal)
        return found

    def check_room(self, principal: str, more: int) -> None:
        """Refuse so many more queries of a principal where they are too many."""
        most = self.settings.max_queries
        with self.catalog.read() as tx:
            have = count_owned(tx, principal)
        if have + more > most:
            raise TooMany(f"a principal has at most {most:,} queries", hint="unregister some")

    async def compute(self, principal: str, work: Callable[[], Rendered]) -> Rendered:
        """Compute something in one of the threads that answer."""
        with self._counted(principal):
            return await self._in_thread(work)

    async def invoke(
        self, principal: str, soup: Soup, handle: str, now: datetime | None, show: Callable[[Answer], Rendered]
    ) -> Rendered:
        """Invoke a query: in a thread, or at once where that is known to take no time.

        Going to a thread and back takes longer than a small answer, and keeps large ones from making all others wait.
        """
        with self._counted(principal):
            if not self._is_quick(soup, handle):
                return await self._in_thread(lambda: show(self._timed(soup, handle, now)))
            answer = self._timed(soup, handle, now)
            return show(answer) if len(answer) <= FEW_ROWS else await self._in_thread(lambda: show(answer))

    def _is_quick(self, soup: Soup, handle: str) -> bool:
        took = self._took.get(handle)
        return soup.is_light(handle) if took is None else took < QUICK

    def _timed(self, soup: Soup, handle: str, now: datetime | None) -> Answer:
        """Answer, and note the processor time that it took: not how long others kept it waiting."""
        began = time.thread_time()
        answer = soup.answer(handle, now, None, None)
        took = time.thread_time() - began
        if len(self._took) >= REMEMBERED:
            self._took.clear()
        # Half of it from before: a small surprise does not send a query to a thread, a large one does for a while.
        self._took[handle] = (took + self._took.get(handle, took)) / 2
        return answer

    @contextmanager
    def _counted(self, principal: str) -> Iterator[None]:
        began = time.perf_counter()
        with self.invoking.one(principal):
            yield
        self.metrics.invocations.observe(time.perf_counter() - began)

    async def _in_thread(self, work: Callable[[], Rendered]) -> Rendered:
        return await asyncio.get_running_loop().run_in_executor(self._invokers, work)

    async def wait(self, principal: str, positions: Sequence[str], timeout: float | None) -> None:
        """Wait until all of the positions have come."""
        with self.following.one(principal):
            await arrived(self.watcher, self.catalog, positions, timeout, self.soup.trouble)

    def _committed(self) -> None:
        loop = asyncio.get_running_loop()
        if self.freshness.waits:
            loop.run_in_executor(self._workers, self.freshness.committed)
        loop.run_in_executor(self._workers, self.gate.note_use)

    def _counts(self) -> dict[str, float]:
        return {
            "tureen_followers": self.following.total,
            "tureen_invocations_running": self.invoking.total,
            "tureen_oldest_push_seconds": self.freshness.oldest,
        }
