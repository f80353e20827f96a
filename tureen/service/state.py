"""The state of a running server: pot, authentication, concurrency limits, worker threads, watcher and metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from tureen.errors import TooMany, TureenError
from tureen.federation.federation import Federation
from tureen.federation.link_run import TROUBLED
from tureen.pot.catalog import Catalog
from tureen.pot.peers import Peer
from tureen.pot.status import count_owned
from tureen.results.answer import Answer
from tureen.service.authorization import Authenticator, ConcurrencyLimit
from tureen.service.event_stream import encode_changes
from tureen.service.http_neighbour import HttpNeighbour
from tureen.service.invocation_times import InvocationTimes
from tureen.service.metrics import FreshnessSampler, Metrics, StatusCollector
from tureen.service.page.activity import SAMPLE_SECONDS, ActivityHistory
from tureen.service.page.sessions import PageSessions
from tureen.service.peer_tokens import with_token
from tureen.service.poll_turns import PollTurns
from tureen.service.recent_values import RecentValues
from tureen.service.rendering import Rendered
from tureen.service.settings import Settings
from tureen.service.shared_answers import SharedAnswers
from tureen.service.shared_reads import SharedReads
from tureen.service.watcher import ProgressWatcher, wait_for_positions
from tureen.soup.embedded import Soup
from tureen.soup.embedded_calls import EmbeddedCalls
from tureen.soup.served_soup import ServedSoup
from tureen.soup.waiting import WAIT_SECONDS

WORKERS = 64
"""The number of threads for everything but invocations."""

INLINE_ROWS = 1_024
"""An answer of at most this many rows is rendered in the thread that computed it."""


class SharedStatus(NamedTuple):
    """The status of the pot as several requests see it, and the responses that were made of it."""

    full: Mapping[str, Any]
    responses: RecentValues


class Service:
    """The state of one server; its methods are called in the event loop."""

    def __init__(self, soup: Soup, settings: Settings) -> None:
        """Create the state for serving a pot."""
        self.soup, self.settings = ServedSoup.of(soup), settings
        self._federation = self.soup.federate(self._connect, settings.name or None, settings.federation)
        self.catalog = Catalog(soup.path)
        self.authenticator = Authenticator(self.catalog, open_to_all=settings.no_auth)
        self.invoking = ConcurrencyLimit("invocations", settings.max_invocations)
        self.following = ConcurrencyLimit("followers", settings.max_followers)
        self.xml_streams = ConcurrencyLimit("streams of XML", settings.max_xml_streams)
        self.metrics = Metrics()
        self.sessions = PageSessions(settings.session_seconds)
        self.activity = ActivityHistory(self.metrics, lambda: self.following.total)
        self.recent, self.polls = RecentValues(), PollTurns()
        self.freshness = FreshnessSampler(self.catalog, self.metrics.freshness)
        soup = self.soup
        self.metrics.registry.register(
            StatusCollector(soup.status, soup.batches, self.catalog, self._counts, soup.punctuations)
        )
        self._progress = self.soup.progress
        self.answers = SharedAnswers(self._progress.now)
        self.watcher = ProgressWatcher(
            self._progress,
            self._on_commit,
            self.soup.calls.clauses_with_changes(),
            lambda: self.freshness.has_pending,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self.reads = SharedReads(self.watcher.threads.run, encode_changes)
        self._invokers = ThreadPoolExecutor(settings.invoke_threads, "tureen-invoke")
        self._workers = ThreadPoolExecutor(WORKERS, "tureen-work")
        self._soups: dict[str, ServedSoup] = {}
        self._times = InvocationTimes()
        self._sampling: asyncio.Task[None] | None = None

    def _connect(self, peer: Peer) -> HttpNeighbour:
        return HttpNeighbour(with_token(peer, self.settings.peer_tokens))

    @property
    def federation(self) -> Federation:
        """The federation; raises if the pot is open for reading only."""
        if self._federation is None:
            raise TureenError("a pot that is open for reading only has no peers")
        return self._federation

    async def start(self) -> None:
        """Start watching for commits, in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(self._workers)
        self.watcher.start()
        if self._federation is not None:
            self._federation.start()
        if self.settings.page:
            self._sampling = asyncio.create_task(self._sample())

    async def _sample(self) -> None:
        """Sample the activity until the server stops."""
        while not self.watcher.closing:
            await asyncio.sleep(SAMPLE_SECONDS)
            self.activity.sample()

    def stop_following(self) -> None:
        """End all followers and waiting requests because the server stops."""
        self.watcher.close()
        if self._sampling is not None:
            self._sampling.cancel()

    def close(self) -> None:
        """Release everything but the soup, which its opener closes."""
        self.watcher.close()
        if self._federation is not None:
            self._federation.close()
        self._invokers.shutdown(wait=True, cancel_futures=True)
        self._workers.shutdown(wait=True, cancel_futures=True)
        self.authenticator.record_use(at_once=True)
        self.catalog.close()

    def count_refusal(self, status: int) -> None:
        """Count a request that was refused before it reached the application."""
        self.metrics.requests.labels("-", "-", str(status)).inc()

    def acting_for(self, principal: str) -> ServedSoup:
        """The pot as a principal sees it."""
        soup = self._soups.get(principal)
        if soup is None:
            soup = self._soups[principal] = self.soup.acting_for(principal)
        return soup

    def check_query_limit(self, principal: str, added: int) -> None:
        """Raise TooMany if a principal would have too many queries with `added` more."""
        limit = self.settings.max_queries
        with self.catalog.read() as tx:
            owned = count_owned(tx, principal)
        if owned + added > limit:
            raise TooMany(
                f"a principal may have at most {limit:,} queries, got {owned + added:,}",
                hint="unregister queries that are no longer needed",
            )

    async def status(self, max_age: float) -> SharedStatus:
        """The status of the pot, at most `max_age` seconds old; of all principals."""

        async def read() -> SharedStatus:
            return SharedStatus(await asyncio.to_thread(self.soup.status), RecentValues())

        return await self.recent.get("status", max_age, read)

    async def compute(self, principal: str, work: Callable[[], Rendered]) -> Rendered:
        """Run work that renders a response in a thread for invocations."""
        with self._counted_invocation(principal):
            return await self._in_thread(work)

    async def invoke(
        self,
        principal: str,
        calls: EmbeddedCalls,
        handle: str,
        now: datetime | None,
        render_answer: Callable[[Answer], Rendered],
    ) -> Rendered:
        """Invoke a query and render its answer, in a thread unless it is known to be quick.

        Switching threads takes longer than a small answer; a large answer in the event loop would delay all requests.
        """
        with self._counted_invocation(principal):
            if not self._is_quick(calls, handle):
                return await self._in_thread(lambda: render_answer(self._timed_answer(calls, handle, now)))
            answer = self._timed_answer(calls, handle, now)
            if len(answer) <= INLINE_ROWS:
                return render_answer(answer)
            return await self._in_thread(lambda: render_answer(answer))

    def _is_quick(self, calls: EmbeddedCalls, handle: str) -> bool:
        quick = self._times.is_quick(handle)
        return calls.is_light(handle) if quick is None else quick

    def _timed_answer(self, calls: EmbeddedCalls, handle: str, now: datetime | None) -> Answer:
        return self._times.timed(handle, lambda: calls.answer(handle, now, None, None))

    @contextmanager
    def _counted_invocation(self, principal: str) -> Iterator[None]:
        started_at = time.perf_counter()
        with self.invoking.hold(principal):
            yield
        self.metrics.invocations.observe(time.perf_counter() - started_at)

    async def _in_thread(self, work: Callable[[], Rendered]) -> Rendered:
        return await asyncio.get_running_loop().run_in_executor(self._invokers, work)

    async def wait(self, principal: str, positions: Sequence[str], timeout: float | None) -> None:
        """Wait until all positions are reached; one of a peer is written `peer/position`."""
        deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)
        remote = [position.partition("/")[::2] for position in positions if "/" in position]
        local = [position for position in positions if "/" not in position]
        with self.following.hold(principal):
            for peer, position in remote:
                seconds = max(0.0, deadline - time.monotonic())
                await asyncio.to_thread(self.federation.wait_for, peer, position, seconds)
            await wait_for_positions(self.watcher, self._progress, local, timeout, self.soup.trouble)

    def record_push(self, position: str) -> None:
        """Record when a push was acknowledged, in any thread: the time to its commit is measured."""
        self.freshness.record_push(position)
        if self._loop is not None and self.freshness.has_pending:
            self._loop.call_soon_threadsafe(self.watcher.hurry)

    def _on_commit(self) -> None:
        loop = asyncio.get_running_loop()
        if self.freshness.has_pending:
            loop.run_in_executor(self._workers, self.freshness.observe_commits)
        loop.run_in_executor(self._workers, self.authenticator.record_use)

    def _link_counts(self) -> dict[str, float]:
        if self._federation is None:
            return {}
        links, sent = self.federation.link_states(), self.federation.serving.sent.totals().values()
        return {
            "tureen_links": len(links),
            "tureen_links_aggregated": sum(link.is_aggregated for link in links),
            "tureen_links_away": sum(link.state in TROUBLED for link in links),
            "tureen_link_rows": sum(link.rows for link in links),
            "tureen_link_bytes": sum(link.bytes for link in links),
            "tureen_flows_sent": sum(total.flows for total in sent),
            "tureen_flow_rows": sum(total.rows for total in sent),
            "tureen_flow_bytes": sum(total.bytes for total in sent),
            "tureen_flows_refused": sum(total.refused for total in sent),
            "tureen_flows_kept": sum(state.kept for state in self.federation.peering.states()),
        }

    def _counts(self) -> dict[str, float]:
        return {
            "tureen_followers": self.following.total,
            "tureen_invocations_running": self.invoking.total,
            "tureen_oldest_push_seconds": self.freshness.oldest_seconds,
            **self._link_counts(),
            **{f"tureen_join_{name}": count for name, count in self.soup.calls.join_counts().items()},
        }
