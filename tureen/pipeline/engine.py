"""The engine: the threads of a pot that is open for writing.

One thread starts Spark and keeps its streaming queries running, one does the upkeep, and one derives streams. All
retry after failures.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tureen.aggregates.aggregate_warming import warm_up
from tureen.errors import EngineFailed, WaitTimeout
from tureen.pipeline.choosing import Chooser
from tureen.pipeline.compiling import compile_queries
from tureen.pipeline.debts import Debt, Payment, pay, pay_debts
from tureen.pipeline.deriving import Deriver
from tureen.pipeline.freeing import Freeing
from tureen.pipeline.join_keeping import MANY_OWED, JoinKeeper, run_in_process
from tureen.pipeline.join_task import JoinTask, TaskResult
from tureen.pipeline.key_indexing import KeyIndexer
from tureen.pipeline.repair import repair
from tureen.pipeline.upkeep import expire, seal
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.inbox import Inbox
from tureen.pot.lease import Lease
from tureen.pot.query_runs import renew_query_runs
from tureen.pot.streams import Stream, list_streams
from tureen.pot.sweep import sweep_abandoned, sweep_replaced
from tureen.pot.upkeep_needs import UpkeepNeeds, upkeep_needs
from tureen.queries.query_run import VERSION
from tureen.results.invoke import Invoker

if TYPE_CHECKING:
    from tureen.pipeline.streaming import Streaming

log = logging.getLogger("tureen")

LARGE_DEBT = 4_000_000_000
"""Debts of at least this many tuples × clauses are paid by a Spark job, smaller ones in this process."""

POLL_EVERY = 0.1
SWEEP_EVERY = 10.0
SEARCH_EVERY = 300.0
"""Seconds between searches for files that no commit named, and for expired keys."""
PAY_EVERY = 1.0
REST = 4.0
"""The pause after compiling and paying, as a multiple of their duration, and after keeping joins, as one of their
processor time: arrivals need the processor."""
CHOOSE_EVERY = 5.0
SPARK_DELAY = 1.0
"""Seconds after which an engine starts Spark if nothing needs it earlier: pushes and invocations do not."""
TAKE_TIMEOUT = 120.0
"""Seconds that `settle` waits for Spark to take the pushed rows."""
RESTART_AFTER = 0.5
MAX_RESTART_PAUSE = 30.0
STEADY = 60.0
"""Seconds of running after which the pause before a restart is reset."""


class Engine:
    """Holds the lease, the inbox and the threads of one pot."""

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        invoker: Invoker,
        *,
        master: str,
        nice: int,
        clock: Callable[[], int],
        spark: Mapping[str, str] | None = None,
    ) -> None:
        """Acquire the lease and start; Spark starts in the background. `invoker` answers queries in this process."""
        self._lease = Lease(root)
        try:
            # First, so that readers find the heads after the commit.
            self.inbox = Inbox(root, catalog)
            with catalog.write() as tx:
                renew_query_runs(tx, VERSION)
                # Positions of this engine compare later even if a power failure has set back the count of pushes.
                take_seq(tx)
        except BaseException:
            self._lease.release()
            raise
        self.root, self._catalog, self._clock = root, catalog, clock
        self._master, self._nice, self._spark = master, nice, dict(spark or {})
        self._chooser = Chooser(catalog, invoker.watch)
        self._keeper = JoinKeeper(catalog, invoker.view.segments, invoker.key_indexes)
        self.deriver = Deriver(catalog, self.inbox, invoker, clock)
        self.freeing = Freeing(catalog, self.inbox, invoker)
        self._indexer = KeyIndexer(catalog, invoker.view.segments, invoker.key_indexes)
        self._closing = threading.Event()
        self._spark_needed = threading.Event()
        self._wake = threading.Event()
        self._upkeep_lock = threading.Lock()
        self._streaming: Streaming | None = None
        self._keep_at = 0.0
        """When joins that owe many tuples are kept again."""
        self._listed: tuple[int, Sequence[Stream]] | None = None
        """The streams, and the catalog's token before they were read."""
        self.ready = threading.Event()
        self.error: str | None = None
        self._threads = [
            threading.Thread(target=self._run_spark, name="tureen-spark", daemon=True),
            threading.Thread(target=self._run_upkeep, name="tureen-upkeep", daemon=True),
            threading.Thread(target=self.deriver.run, args=(self._closing,), name="tureen-derive", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def notice(self) -> None:
        """Check the catalog now: a stream was created or dropped."""
        self.deriver.notice()
        self._wake.set()

    def start_spark(self) -> None:
        """Start Spark now, if it is not running."""
        self._spark_needed.set()

    def settle(self) -> None:
        """Wait until all pushed rows are in runs, then compile, pay and merge until there is nothing left to do."""
        self.start_spark()
        while self.deriver.catch_up() or not self.deriver.is_current:
            pass
        self._wait_for_taking()
        while self._upkeep(with_clauses=True):
            pass

    def _wait_for_taking(self) -> None:
        ends = {stream.id: self.inbox.end(stream.id) for stream in self._streams()}
        deadline = time.monotonic() + TAKE_TIMEOUT
        while any(stream.taken < ends.get(stream.id, 0) for stream in self._streams()):
            if time.monotonic() > deadline:
                raise WaitTimeout("pushed rows are not in runs yet", detail=self.error)
            self._closing.wait(0.01)

    def close(self) -> None:
        """Stop everything and release the lease."""
        self._closing.set()
        self._wake.set()
        self.deriver.wake()
        self._spark_needed.set()
        for thread in self._threads:
            # While Spark starts, its thread has not touched the pot yet, and will end by itself.
            if self._streaming is not None or thread is not self._threads[0]:
                thread.join()
        self.inbox.close()
        self._lease.release()

    # Spark

    def _run_spark(self) -> None:
        self._spark_needed.wait(SPARK_DELAY)
        if not self._closing.is_set():
            # Loads the kernels of aggregates while Spark starts, so that an invocation does not wait for them. Not a
            # daemon thread: a process that ends while it loads machine code would be aborted.
            threading.Thread(target=warm_up, name="tureen-warm-up", daemon=False).start()
        pause = RESTART_AFTER
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                self._keep_streaming()
            except Exception as error:
                if self._closing.is_set():
                    # Spark was stopped while it started, as the process ends.
                    break
                self.error = str(error)
                # Only consecutive failures make the pause longer.
                steady = time.monotonic() - began > STEADY
                pause = RESTART_AFTER if steady else min(pause * 2, MAX_RESTART_PAUSE)
                log.exception("the pipeline stopped; retrying in %.1f s", pause)
                self._closing.wait(pause)
        if self._streaming is not None:
            self._streaming.stop()

    def _keep_streaming(self) -> None:
        from tureen.pipeline.streaming import Streaming  # noqa: PLC0415 - Spark is imported when first needed

        if self._streaming is None or not self._streaming.usable():
            self.ready.clear()
            self._streaming = Streaming(self.root, self._master, self._spark, self.inbox)
        priority_lowered = False
        while not self._closing.is_set():
            self._streaming.align(self._streams())
            self.ready.set()
            self.error = self._streaming.error
            priority_lowered = priority_lowered or self._streaming.lower_priority(self._nice)
            self._closing.wait(0.2)
            if not self._streaming.usable():
                raise EngineFailed("Spark died")

    def wait_ready(self, seconds: float) -> None:
        """Wait until Spark has started and its streaming queries run."""
        self.start_spark()
        if not self.ready.wait(seconds):
            raise EngineFailed("Spark has not started yet", detail=self.error)

    def source_errors(self) -> dict[int, str]:
        """The current errors of external sources and of derived streams' queries, by the id of their stream."""
        return self.deriver.errors() | ({} if self._streaming is None else self._streaming.source_errors)

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each streaming query: its seconds and its rows."""
        return [] if self._streaming is None else self._streaming.batches()

    def _pay_by_spark(self, debts: list[Debt]) -> list[Payment]:
        if self._streaming is None or not self._streaming.usable():
            return [pay(debt) for debt in debts]
        return self._streaming.pay(debts)

    def _join_by_spark(self, tasks: list[JoinTask]) -> list[TaskResult]:
        if self._streaming is None or not self._streaming.usable():
            return run_in_process(tasks)
        return self._streaming.join(tasks)

    # Upkeep

    def _run_upkeep(self) -> None:
        token, swept, searched, pay_at, owing, chose = -1, 0.0, 0.0, 0.0, False, time.monotonic()
        while not self._closing.is_set():
            try:
                now = time.monotonic()
                current = self._catalog.token()
                due = now >= pay_at
                if current != token or (owing and due):
                    # New clauses wait a little, so that consecutive ones are compiled and paid together, and longer if
                    # the last time took longer. Meanwhile, what is owed is evaluated at invocation.
                    token, owing = current, not due
                    self._upkeep(with_clauses=due)
                    owing = owing or self._indexer.is_behind
                    if due:
                        duration = time.monotonic() - now
                        pay_at = now + duration + max(PAY_EVERY, REST * duration)
                if now - chose >= CHOOSE_EVERY:
                    self._chooser.choose(now - chose)
                    chose = now
                if now - swept >= SWEEP_EVERY:
                    swept = now
                    self._clean()
                if now - searched >= SEARCH_EVERY:
                    searched = now
                    self._remove_abandoned()
            except Exception:
                log.exception("upkeep failed and will be retried")
                token = -1
                self._closing.wait(1.0)
            self._wake.wait(POLL_EVERY)
            self._wake.clear()

    def _upkeep(self, *, with_clauses: bool) -> bool:
        """One round over the streams that need work; True if it changed anything.

        `with_clauses` includes compiling, paying and the key indexes of new joins, and keeping joins that owe little.
        """
        changed = False
        with self._upkeep_lock:
            with self._catalog.read() as tx:
                needs = upkeep_needs(tx, with_clauses=with_clauses)
            for need in needs:
                if self._closing.is_set():
                    return False
                for step in self._steps(need):
                    try:
                        changed = bool(step()) or changed
                    except Exception:
                        # A failure of one stream must not delay the others; it is retried in the next round.
                        log.exception("the upkeep of stream '%s' failed", need.stream.name)
            if not self._closing.is_set():
                changed = self._keep_joins(everything=with_clauses) or changed
                if with_clauses:
                    self._indexer.plan()
            return self._indexer.build() or changed

    def _keep_joins(self, *, everything: bool) -> bool:
        """A step of the joins that owe many tuples, or of all of them; True if it changed anything."""
        if not everything and time.monotonic() < self._keep_at:
            return False
        # Not the duration: while rows arrive, a step mostly waits for a processor.
        began = time.thread_time()
        changed = self._keeper.keep(self._join_by_spark, least=1 if everything else MANY_OWED)
        self._keep_at = time.monotonic() + REST * (time.thread_time() - began)
        return changed

    def _steps(self, needs: UpkeepNeeds) -> list[Callable[[], object]]:
        stream = needs.stream
        steps: list[tuple[bool, Callable[[], object]]] = [
            (needs.repair, lambda: repair(self._catalog, stream)),
            (needs.compile, lambda: compile_queries(self._catalog, stream)),
            # Before merging, so that expired runs are not merged.
            (True, lambda: expire(self._catalog, stream, self._clock())),
            (needs.merge, lambda: seal(self._catalog, stream)),
            (needs.pay, lambda: pay_debts(self._catalog, stream, self._pay_by_spark, LARGE_DEBT)),
        ]
        return [step for is_needed, step in steps if is_needed]

    def _clean(self) -> None:
        self.inbox.trim()
        with self._upkeep_lock:
            for stream in self._streams():
                self.freeing.free(stream, self._clock())
            sweep_replaced(self._catalog)

    def _remove_abandoned(self) -> None:
        self.inbox.forget_old_keys()
        with self._upkeep_lock:
            sweep_abandoned(self._catalog)
        checkpoints = self.root / "checkpoints"
        live = {str(stream.id) for stream in self._streams()}
        for path in checkpoints.iterdir() if checkpoints.exists() else ():
            if path.name.isdigit() and path.name not in live:
                shutil.rmtree(path, ignore_errors=True)

    def _streams(self) -> Sequence[Stream]:
        """All streams; read again only after a commit, because callers poll and a pot may have many."""
        token = self._catalog.token()
        listed = self._listed
        if listed is None or listed[0] != token:
            with self._catalog.read() as tx:
                listed = token, tuple(list_streams(tx))
            self._listed = listed
        return listed[1]
