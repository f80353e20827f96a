"""(f) Queries that come and go, a thousand a second: what it does to matching, and to rows that arrive meanwhile.

*Matching*: a block is matched with the query runs that thousands of registrations and unregistrations left behind, as
they lie, and with the same clauses compiled into one run; both give the same cells. *Arrivals*: 10,000 rows a second
are pushed to a running pot, with and without queries coming and going from 32 threads; how late a row is visible.
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
from benchmarks.workload import SCHEMA, conditions, register_all, tuples
from tureen.language.fast.quick import QuickBinder
from tureen.matching import Buffers, CellReader, match_block
from tureen.pot.clauses import eager_clauses
from tureen.pot.queries import NewInput, Registration, Unregistration
from tureen.pot.query_runs import live_query_runs
from tureen.pot.registering import change_together
from tureen.pot.streams import find_stream
from tureen.queries import QueryRun, compile_clauses
from tureen.schema import Schema
from tureen.service.server import SWITCH_AFTER
from tureen.stems.index import Block, index_block
from tureen.testing.hand_turned import HandTurned

TOGETHER = 128
BLOCK = 65_536
PER_SECOND = 1000
ROUNDS = 15
THREADS = 32
DIFFERENT = 4096
"""How many conditions each of the threads has, made before anything is timed."""


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Both parts."""
    _matching(root / "churn", report, scale)
    before = sys.getswitchinterval()
    # As the server has it: registrations from many threads wait for the interpreter more than for anything else.
    sys.setswitchinterval(SWITCH_AFTER)
    try:
        _arrivals(root / "churned", report, scale)
    finally:
        sys.setswitchinterval(before)


def _matching(root: Path, report: Report, scale: Scale) -> None:
    hand = HandTurned(root)
    hand.create_stream("r", SCHEMA, time="ts")
    wanted = conditions(scale.many + scale.changes, seed=11)
    standing = _register(hand, wanted[: scale.many])
    hand.compile()
    began = time.perf_counter()
    for start in range(scale.many, len(wanted), TOGETHER):
        standing += _register(hand, wanted[start : start + TOGETHER])
        change_together(hand.catalog, [Unregistration(handle) for handle in standing[:TOGETHER]])
        del standing[:TOGETHER]
        hand.compile()
    seconds = time.perf_counter() - began
    with hand.catalog.read() as tx:
        stream = find_stream(tx, "r")
        runs = [QueryRun.load(root / one.path) for one in live_query_runs(tx, stream.id)]
        eager = eager_clauses(tx, stream.id)
    fresh = compile_clauses([one.number for one in eager], [one.clause for one in eager], Schema.parse(SCHEMA, "ts"))
    batch = tuples(BLOCK, 3).combine_chunks().to_batches()[0]
    block = Block(batch, index_block(batch, ["a", "b", "c", "d", "ts"]))
    live = {one.number for one in eager}
    assert _counts(block, runs, live) == _counts(block, [fresh], live), "a churned query run matches something else"
    worn, anew = [], []
    buffers = Buffers()
    for _ in range(ROUNDS):
        worn.append(_seconds(block, runs, buffers))
        anew.append(_seconds(block, [fresh], buffers))
    report.add("query runs after the churn", len(runs), "")
    report.reach("churn", min(worn) / min(anew))
    report.add(
        "registrations and unregistrations, with compiling, in one thread", 2 * scale.changes / seconds, "a second"
    )
    hand.close()


def _register(hand: HandTurned, wanted: Sequence[str]) -> list[str]:
    """Register queries that come together."""
    binder = QuickBinder()
    schema = Schema.parse(SCHEMA, "ts")
    texts = [f"SELECT * FROM r WHERE {where}" for where in wanted]
    bound = [binder.bind(text, lambda name: (name, schema)) for text in texts]
    some = [Registration(query.sql, shape, (NewInput(1, query.stream.clause),), eager=True) for query, shape in bound]
    found = change_together(hand.catalog, some)
    return [handle for handle in found if isinstance(handle, str)]


def _seconds(block: Block, runs: list[QueryRun], buffers: Buffers) -> float:
    began = time.perf_counter()
    for run in runs:
        match_block(block, run, buffers)
    return time.perf_counter() - began


def _counts(block: Block, runs: list[QueryRun], live: set[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for run in runs:
        reader = CellReader(match_block(block, run, Buffers()).batch, block.rows)
        found |= {number: reader.count_of(number) for number in reader.clauses.tolist() if number in live}
    return found


def _arrivals(root: Path, report: Report, scale: Scale) -> None:
    with tureen.open(root, mode="write") as soup:
        soup.start(wait=120)
        soup.create_stream("r", SCHEMA, time="ts")
        register_all(soup, "r", conditions(scale.many), materialize=True)
        soup.settle()
        probe = soup.register("SELECT count(*) AS n FROM r")
        lots = [tuples(int(scale.rate * seconds), 100) for seconds in (scale.warm_seconds, scale.seconds)]
        _stretch(soup, probe, scale, lots[0])
        quiet = _stretch(soup, probe, scale, lots[1])
        churn = _Churn(soup)
        began = time.perf_counter()
        busy = _stretch(soup, probe, scale, lots[1])
        seconds = time.perf_counter() - began
        done = churn.stop()
    report.add("registrations and unregistrations while rows arrived", done / seconds, "a second", f">= {PER_SECOND}")
    report.add("push to visible, p50, without", statistics.median(quiet), "s")
    report.add("push to visible, p50, with queries coming and going", statistics.median(busy), "s")
    report.add("push to visible, p99, with queries coming and going", float(np.percentile(busy, 99)), "s", "<= 2")


def _stretch(soup: tureen.Soup, probe: tureen.StandingQuery, scale: Scale, whole: pa.Table) -> list[float]:
    """Push rows at the rate; how late each push was visible."""
    late: list[float] = []
    waiting: list[tuple[float, str]] = []
    done = threading.Event()

    def watch() -> None:
        while waiting or not done.is_set():
            if not waiting:
                time.sleep(0.002)
                continue
            began, at = waiting.pop(0)
            soup.wait(at, timeout=60)
            late.append(time.perf_counter() - began)

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = probe.invoke().table.column("n")[0].as_py()
    rows = int(scale.rate * scale.push_every)
    started = time.perf_counter()
    for step in range(len(whole) // rows):
        # Once, and not in small steps: waking up costs the queries that come and go.
        time.sleep(max(0.0, started + step * scale.push_every - time.perf_counter()))
        began = time.perf_counter()
        waiting.append((began, soup.push("r", whole.slice(step * rows, rows))))
    done.set()
    watcher.join()
    assert probe.invoke().table.column("n")[0].as_py() == before + len(whole), "rows were lost or doubled"
    return late


class _Churn:
    """Registers and unregisters at a rate, from a few threads: half of the queries eager, half as the engine likes."""

    def __init__(self, soup: tureen.Soup) -> None:
        self._soup = soup
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(THREADS)
        wanted = [conditions(DIFFERENT, seed=1000 + seed) for seed in range(THREADS)]
        self._done = [self._pool.submit(self._run, some) for some in wanted]

    def _run(self, wanted: list[str]) -> int:
        done, started = 0, time.perf_counter()
        standing: list[tureen.StandingQuery] = []
        for number, where in enumerate(itertools.cycle(wanted)):
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
        """End it; how many were registered and unregistered."""
        self._stopping.set()
        total = sum(one.result() for one in self._done)
        self._pool.shutdown()
        return total
