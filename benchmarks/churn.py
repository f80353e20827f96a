"""(f) A thousand registrations and unregistrations per second: their effect on matching and on arriving rows.

*Matching*: a block is matched with the query runs that thousands of registrations and unregistrations left, and with
the same clauses compiled into one run; both yield the same cells. *Arrivals*: 10,000 rows per second are pushed to a
running pot, with and without registrations from 32 threads; the delay until a row is in a run is measured.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

import tureen
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.taking import wait_until_taken
from benchmarks.workload import SCHEMA, conditions, register_all, tuples
from tureen.language.fast.quick import QuickBinder
from tureen.matching import Buffers, CellReader, match_block
from tureen.pot.clauses import eager_clauses
from tureen.pot.query_runs import live_query_runs
from tureen.pot.registered import NewInput, Registration, Unregistration
from tureen.pot.registering import change_together
from tureen.pot.streams import find_stream
from tureen.queries import QueryRun, compile_clauses
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.service.server import SWITCH_INTERVAL
from tureen.stems.index import Block, index_block
from tureen.testing.manual_engine import ManualEngine

TOGETHER = 128
BLOCK = 65_536
PER_SECOND = 1000
ROUNDS = 15
THREADS = 32
DIFFERENT = 4096
"""The number of conditions of each thread, generated before anything is timed."""


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure matching, then arrivals."""
    _matching(root / "churn", report, scale)
    before = sys.getswitchinterval()
    # The server's setting: registrations from many threads mostly wait for the interpreter lock.
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        _arrivals(root / "churned", report, scale)
    finally:
        sys.setswitchinterval(before)


def _matching(root: Path, report: Report, scale: Scale) -> None:
    engine = ManualEngine(root)
    engine.create_stream("r", SCHEMA, time="ts")
    wheres = conditions(scale.many + scale.changes, seed=11)
    handles = _register(engine, wheres[: scale.many])
    engine.compile()
    began = time.perf_counter()
    for start in range(scale.many, len(wheres), TOGETHER):
        handles += _register(engine, wheres[start : start + TOGETHER])
        change_together(engine.catalog, [Unregistration(handle) for handle in handles[:TOGETHER]])
        del handles[:TOGETHER]
        engine.compile()
    seconds = time.perf_counter() - began
    with engine.catalog.read() as tx:
        stream = find_stream(tx, "r")
        runs = [QueryRun.load(root / live_run.path) for live_run in live_query_runs(tx, stream.id)]
        eager = eager_clauses(tx, stream.id)
    compiled = compile_clauses(
        [clause.number for clause in eager], [clause.clause for clause in eager], Schema.parse(SCHEMA, "ts")
    )
    batch = tuples(BLOCK, 3).combine_chunks().to_batches()[0]
    block = Block(batch, index_block(batch, ["a", "b", "c", "d", "ts"]))
    live = {clause.number for clause in eager}
    assert _counts(block, runs, live) == _counts(block, [compiled], live), "a churned query run matches something else"
    churned_seconds, compiled_seconds = [], []
    buffers = Buffers()
    for _ in range(ROUNDS):
        churned_seconds.append(_seconds(block, runs, buffers))
        compiled_seconds.append(_seconds(block, [compiled], buffers))
    report.add("query runs after the churn", len(runs), "")
    report.reach("churn", min(churned_seconds) / min(compiled_seconds))
    report.add(
        "registrations and unregistrations, with compiling, in one thread", 2 * scale.changes / seconds, "a second"
    )
    engine.close()


def _register(engine: ManualEngine, wheres: Sequence[str]) -> list[str]:
    """Register queries in one commit."""
    binder = QuickBinder()
    schema = Schema.parse(SCHEMA, "ts")
    texts = [f"SELECT * FROM r WHERE {where}" for where in wheres]
    bound = [binder.bind(text, lambda name: NamedRelation(name, schema)) for text in texts]
    registrations = [
        Registration(query.sql, shape, (NewInput(1, query.stream.clause),), eager=True) for query, shape in bound
    ]
    outcomes = change_together(engine.catalog, registrations)
    return [handle for handle in outcomes if isinstance(handle, str)]


def _seconds(block: Block, runs: list[QueryRun], buffers: Buffers) -> float:
    began = time.perf_counter()
    for run in runs:
        match_block(block, run, buffers)
    return time.perf_counter() - began


def _counts(block: Block, runs: list[QueryRun], live: set[int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for run in runs:
        reader = CellReader(match_block(block, run, Buffers()).batch, block.rows)
        counts |= {number: reader.count_of(number) for number in reader.clauses.tolist() if number in live}
    return counts


def _arrivals(root: Path, report: Report, scale: Scale) -> None:
    with tureen.open(root, mode="write") as soup:
        soup.start(wait=120)
        soup.create_stream("r", SCHEMA, time="ts")
        register_all(soup, "r", conditions(scale.many), materialize=True)
        soup.settle()
        probe = soup.register("SELECT count(*) AS n FROM r")
        tables = [tuples(int(scale.rate * seconds), 100) for seconds in (scale.warm_seconds, scale.seconds)]
        _stretch(soup, probe, scale, tables[0])
        without_churn = _stretch(soup, probe, scale, tables[1])
        churn = _Churn(soup)
        began = time.perf_counter()
        with_churn = _stretch(soup, probe, scale, tables[1])
        seconds = time.perf_counter() - began
        done = churn.stop()
    report.add("registrations and unregistrations while rows arrived", done / seconds, "a second", f">= {PER_SECOND}")
    report.add("push to its run, p50, without", statistics.median(without_churn), "s")
    report.add("push to its run, p50, with queries coming and going", statistics.median(with_churn), "s")
    report.add("push to its run, p99, with queries coming and going", float(np.percentile(with_churn, 99)), "s", "<= 2")


def _stretch(soup: tureen.Soup, probe: tureen.StandingQuery, scale: Scale, table: pa.Table) -> list[float]:
    """Push rows at a steady rate; return the delay until each push was in a run."""
    delays: list[float] = []
    pending: list[tuple[float, str]] = []
    done = threading.Event()

    def watch() -> None:
        while pending or not done.is_set():
            if not pending:
                time.sleep(0.002)
                continue
            began, at = pending.pop(0)
            wait_until_taken(soup, at, timeout=60)
            delays.append(time.perf_counter() - began)

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = probe.invoke().table.column("n")[0].as_py()
    rows = int(scale.rate * scale.push_every)
    started = time.perf_counter()
    for step in range(len(table) // rows):
        # A single sleep: waking up more often would slow down the registrations.
        time.sleep(max(0.0, started + step * scale.push_every - time.perf_counter()))
        began = time.perf_counter()
        pending.append((began, soup.push("r", table.slice(step * rows, rows))))
    done.set()
    watcher.join()
    assert probe.invoke().table.column("n")[0].as_py() == before + len(table), "rows were lost or doubled"
    return delays


class _Churn:
    """Registers and unregisters at a steady rate from several threads: half of the queries eager, half `auto`."""

    def __init__(self, soup: tureen.Soup) -> None:
        self._soup = soup
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self._futures = [
            self._pool.submit(self._run, conditions(DIFFERENT, seed=1000 + seed)) for seed in range(THREADS)
        ]

    def _run(self, wheres: list[str]) -> int:
        done, started = 0, time.perf_counter()
        standing: list[tureen.StandingQuery] = []
        for number, where in enumerate(itertools.cycle(wheres)):
            if self._stopping.is_set():
                break
            sql = f"SELECT * FROM r WHERE {where}"
            standing.append(self._soup.register(sql, materialize=True if number % 2 else "auto"))
            done += 1
            if len(standing) > 32:
                standing.pop(0).unregister()
                done += 1
            ahead = started + done * THREADS / (1.1 * PER_SECOND) - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
        return done

    def stop(self) -> int:
        """Stop the threads; return the number of registrations and unregistrations."""
        self._stopping.set()
        total = sum(future.result() for future in self._futures)
        self._pool.shutdown()
        return total
