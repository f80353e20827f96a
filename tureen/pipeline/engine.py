"""The engine: what runs while a pot is open for writing.

One thread starts Spark and keeps its streaming queries alive; one sees to the upkeep. Both may fail and go on.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tureen.aggregates.warming import warm_up
from tureen.errors import EngineFailed
from tureen.pipeline.choosing import Chooser
from tureen.pipeline.compiling import compile_queries
from tureen.pipeline.debts import Debt, Payment, pay, pay_debts
from tureen.pipeline.repair import repair
from tureen.pipeline.upkeep import expire, seal
from tureen.pot.catalog import Catalog
from tureen.pot.inbox import Inbox
from tureen.pot.lease import Lease
from tureen.pot.query_runs import renew_query_runs
from tureen.pot.streams import Stream, list_streams
from tureen.pot.sweep import sweep_abandoned, sweep_replaced
from tureen.queries.query_run import VERSION
from tureen.results.watch import Watch

if TYPE_CHECKING:
    from tureen.pipeline.streaming import Streaming

log = logging.getLogger("tureen")

LARGE_DEBT = 4_000_000_000
"""Debts of so many tuples × clauses are paid by a Spark job, smaller ones in this process."""

LOOK_EVERY = 0.1
SWEEP_EVERY = 10.0
SEARCH_EVERY = 300.0
"""How often it is looked for what was left behind: files of attempts that came to nothing, keys that are too old."""
PAY_EVERY = 1.0
REST = 4.0
"""Between two times of compiling and paying passes so many times the length of the last, to leave room for arrivals."""
CHOOSE_EVERY = 5.0
RESTART_AFTER = 0.5
STEADY = 60.0


class Engine:
    """Holds the lease, the inbox and the threads of one pot."""

    def __init__(
        self,
        root: Path,
        catalog: Catalog,
        watch: Watch,
        *,
        master: str,
        nice: int,
        clock: Callable[[], int],
        spark: Mapping[str, str] | None = None,
    ) -> None:
        """Take the lease and start; Spark comes up in the background. `watch` counts what invocations ask for."""
        self._lease = Lease(root)
        try:
            with catalog.write() as tx:
                renew_query_runs(tx, VERSION)
            self.inbox = Inbox(root, catalog)
        except BaseException:
            self._lease.release()
            raise
        self.root, self._catalog, self._clock = root, catalog, clock
        self._master, self._nice, self._spark = master, nice, dict(spark or {})
        self._chooser = Chooser(catalog, watch)
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._upkeep_lock = threading.Lock()
        self._streaming: Streaming | None = None
        self.ready = threading.Event()
        self.error: str | None = None
        self._threads = [
            threading.Thread(target=self._run_spark, name="tureen-spark", daemon=True),
            threading.Thread(target=self._run_upkeep, name="tureen-upkeep", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        # While Spark starts there is time to load what the first invocation of an aggregate would wait for. It is no
        # daemon: a process that ends while machine code is loaded would be aborted.
        threading.Thread(target=warm_up, name="tureen-warm-up").start()

    def notice(self) -> None:
        """Look at the catalog now: a stream was created or dropped."""
        self._wake.set()

    def settle(self) -> None:
        """Compile, pay and merge until there is nothing left to do."""
        while self._upkeep(patient=False):
            pass

    def close(self) -> None:
        """Stop everything and give the lease back."""
        self._closing.set()
        self._wake.set()
        for thread in self._threads:
            # Spark that is still starting has touched nothing yet, and will see that it is not wanted.
            if self._streaming is not None or thread is not self._threads[0]:
                thread.join()
        self.inbox.close()
        self._lease.release()

    # Spark

    def _run_spark(self) -> None:
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
                # What ran for a while was well: only failures in a row make the pause longer.
                pause = RESTART_AFTER if time.monotonic() - began > STEADY else min(pause * 2, 30.0)
                log.exception("the pipeline stopped; trying again in %.1f s", pause)
                self._closing.wait(pause)
        if self._streaming is not None:
            self._streaming.stop()

    def _keep_streaming(self) -> None:
        from tureen.pipeline.streaming import Streaming  # noqa: PLC0415 - Spark is imported when first needed

        if self._streaming is None or not self._streaming.usable():
            self.ready.clear()
            self._streaming = Streaming(self.root, self._master, self._spark)
        stood_back = False
        while not self._closing.is_set():
            self._streaming.align(self._streams())
            self.ready.set()
            self.error = self._streaming.error
            stood_back = stood_back or self._streaming.stand_back(self._nice)
            self._closing.wait(0.2)
            if not self._streaming.usable():
                raise EngineFailed("Spark died")

    def wait_ready(self, seconds: float) -> None:
        """Wait until Spark is up and its streaming queries run."""
        if not self.ready.wait(seconds):
            raise EngineFailed("Spark is not up yet", detail=self.error)

    def source_errors(self) -> dict[int, str]:
        """Why outside sources are not read at the moment, by the id of their stream."""
        return {} if self._streaming is None else self._streaming.source_errors

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each streaming query: its seconds and its rows."""
        return [] if self._streaming is None else self._streaming.batches()

    def _pay_by_spark(self, debts: list[Debt]) -> list[Payment]:
        if self._streaming is None or not self._streaming.usable():
            return [pay(debt) for debt in debts]
        return self._streaming.pay(debts)

    # Upkeep

    def _run_upkeep(self) -> None:
        token, swept, searched, pay_at, owing, chose = -1, 0.0, 0.0, 0.0, False, time.monotonic()
        while not self._closing.is_set():
            try:
                now = time.monotonic()
                found = self._catalog.token()
                due = now >= pay_at
                if found != token or (owing and due):
                    # New clauses wait a little, so that those that come in a row are compiled and paid together, and
                    # the longer the longer the last time took: what is owed is evaluated meanwhile.
                    token, owing = found, not due
                    self._upkeep(patient=not due)
                    if due:
                        took = time.monotonic() - now
                        pay_at = now + took + max(PAY_EVERY, REST * took)
                if now - chose >= CHOOSE_EVERY:
                    self._chooser.choose(now - chose)
                    chose = now
                if now - swept >= SWEEP_EVERY:
                    swept = now
                    self._clean()
                if now - searched >= SEARCH_EVERY:
                    searched = now
                    self._search()
            except Exception:
                log.exception("upkeep failed and will be tried again")
                token = -1
                self._closing.wait(1.0)
            self._wake.wait(LOOK_EVERY)
            self._wake.clear()

    def _upkeep(self, *, patient: bool) -> bool:
        """One round over all streams; True if something was done. `patient` leaves new clauses for later."""
        did = False
        with self._upkeep_lock:
            for stream in self._streams():
                if self._closing.is_set():
                    return False
                for step in self._steps(stream, patient=patient):
                    try:
                        did = bool(step()) or did
                    except Exception:
                        # One stream's trouble must not keep the others waiting; it is tried again next time.
                        log.exception("the upkeep of stream '%s' failed", stream.name)
        return did

    def _steps(self, stream: Stream, *, patient: bool) -> list[Callable[[], object]]:
        merge: list[Callable[[], object]] = [
            # What is too old is not merged first.
            lambda: expire(self._catalog, stream, self._clock()),
            lambda: seal(self._catalog, stream),
        ]
        if patient:
            return merge
        return [
            lambda: repair(self._catalog, stream),
            lambda: compile_queries(self._catalog, stream),
            *merge,
            lambda: pay_debts(self._catalog, stream, self._pay_by_spark, LARGE_DEBT),
        ]

    def _clean(self) -> None:
        self.inbox.trim()
        with self._upkeep_lock:
            sweep_replaced(self._catalog)

    def _search(self) -> None:
        self.inbox.forget_old_keys()
        with self._upkeep_lock:
            sweep_abandoned(self._catalog)
        checkpoints = self.root / "checkpoints"
        live = {str(stream.id) for stream in self._streams()}
        for path in checkpoints.iterdir() if checkpoints.exists() else ():
            if path.name.isdigit() and path.name not in live:
                shutil.rmtree(path, ignore_errors=True)

    def _streams(self) -> list[Stream]:
        with self._catalog.read() as tx:
            return list_streams(tx)
