"""A long steady load on a server: its memory, its files and its latency must not grow.

Small pushes arrive at a steady rate in a stream with a short retention, while a client invokes queries. The resources
of the server are sampled (see `benchmarks/footprint.py`). They must be the same at the end as when the stream had first
reached its retention.

A soak can be compressed: with a tenth of the retention and ten times the rate, a tenth of the time has as many rows,
runs and merges. Delays by the clock, like the grace of replaced files, are not compressed.
"""

from __future__ import annotations

import asyncio
import csv
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.footprint import Footprint, measure_footprint, sizes_of_files
from benchmarks.plot import draw
from benchmarks.report import Report
from benchmarks.service import ARROW, SCHEMA, Socket, rows_of, serving, stream_of

PUSH_EVERY = 0.1
LIST_EVERY = 2.0
SAMPLES = 240
"""The number of samples."""

INVOKE_EVERY = 0.02
"""Pause between invocations, in seconds."""

SELECTIONS, GROUPINGS = 56, 8
FLAT = 1.2
"""The maximum growth of any metric from the second fifth of the time to the last."""


@dataclass(frozen=True)
class Soak:
    """Duration, rows per second, and retention in seconds."""

    seconds: float = 3600.0
    rate: int = 2_000
    retain: int = 120

    def description(self) -> str:
        """The parameters as text."""
        return f"{self.seconds / 60:.3g} minutes of {self.rate:,} rows/s, of which {self.retain} seconds are retained"


@dataclass
class Sample:
    """A sample; latencies are those since the last sample, in seconds."""

    at: float
    footprint: Footprint
    invoked: list[float]
    fresh: list[float]


@dataclass
class SoakLog:
    """All samples and latencies."""

    samples: list[Sample] = field(default_factory=list)
    invoked: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    rows: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Requests that failed, by kind and response."""
    runs: dict[str, int] = field(default_factory=dict)
    """The size of every file of a stream that was listed."""


def measure(root: Path, report: Report, soak: Soak) -> None:
    """Start a server, push and invoke, and report its resources."""
    pot = root / "soak"
    with serving(pot) as (process, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            while http.get("/healthz").status_code != 200:
                time.sleep(0.2)
            stream = {"name": "s", "schema": SCHEMA, "time": "ts", "retain": f"{soak.retain} seconds"}
            http.post("/v1/streams", json=stream).raise_for_status()
            handles = [_register(http, sql) for sql in _queries(soak)]
            log = asyncio.run(_load(url, token, handles, process.pid, pot, soak))
            assert http.get("/healthz").status_code == 200, "the server is not healthy after the load"
            metrics = http.get("/metrics").text
    assert not re.search(r'route="/v1[^}]*status="5\d\d"', metrics), "the server returned errors"
    write_table(report.folder / "soak.csv", log.samples)
    report_on(report, log, soak)
    _plot(report.plot("soak.svg", f"Tureen: {soak.description()}"), log, soak)


def _queries(soak: Soak) -> list[str]:
    window = f"BEGIN NOW - {soak.retain} SECONDS END NOW"
    selections = [
        f"SELECT a, b, ts FROM s WHERE a = {number} AND b BETWEEN {4 * number} AND {4 * number + 15} {window}"
        for number in range(SELECTIONS)
    ]
    return selections + [
        f"SELECT c % 16 AS g, count(*) AS n, sum(d) AS total FROM s WHERE b > {30 * number} GROUP BY c % 16 {window}"
        for number in range(GROUPINGS)
    ]


def _register(http: httpx.Client, sql: str) -> str:
    response = http.post("/v1/queries", json={"sql": sql})
    response.raise_for_status()
    return str(response.json()["id"])


async def _load(url: str, token: str, handles: list[str], pid: int, pot: Path, soak: Soak) -> SoakLog:
    log, began = SoakLog(), time.perf_counter()
    until = began + soak.seconds
    pushed: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    await asyncio.gather(
        _push(await Socket.open(url, token), log, soak, until, pushed),
        _invoke(await Socket.open(url, token), log, handles, until),
        _watch(await Socket.open(url, token), log, until, pushed),
        _sample(log, pid, pot, soak, began),
    )
    return log


async def _push(
    socket: Socket, log: SoakLog, soak: Soak, until: float, pushed: asyncio.Queue[tuple[str, float]]
) -> None:
    due, count = time.perf_counter(), int(soak.rate * PUSH_EVERY)
    while time.perf_counter() < until:
        status, body = await socket.ask("POST", "/v1/streams/s/rows", stream_of(rows_of(count)), ARROW)
        if status == 202:
            log.rows += count
            pushed.put_nowait((json.loads(body)["position"], time.perf_counter()))
        else:
            log.failures[f"push: {status} {body[:200]!r}"] += 1
        due += PUSH_EVERY
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _invoke(socket: Socket, log: SoakLog, handles: Sequence[str], until: float) -> None:
    number = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        status, body = await socket.ask("GET", f"/v1/queries/{handles[number % len(handles)]}/result")
        log.invoked.append(time.perf_counter() - began)
        if status != 200:
            log.failures[f"invoke: {status} {body[:200]!r}"] += 1
        number += 1
        await asyncio.sleep(INVOKE_EVERY)


async def _watch(socket: Socket, log: SoakLog, until: float, pushed: asyncio.Queue[tuple[str, float]]) -> None:
    """Wait for the newest push repeatedly, and measure the time until it is committed."""
    while time.perf_counter() < until:
        try:
            position, at = await asyncio.wait_for(pushed.get(), 1)
        except TimeoutError:
            continue
        while not pushed.empty():
            position, at = pushed.get_nowait()
        status, body = await socket.ask("GET", f"/v1/wait?position={position}&timeout=60")
        if status >= 300:
            log.failures[f"wait: {status} {body[:200]!r}"] += 1
        log.fresh.append(time.perf_counter() - at)


async def _sample(log: SoakLog, pid: int, pot: Path, soak: Soak, began: float) -> None:
    """Sample the server, and list the files of runs often enough to miss none."""
    every = max(LIST_EVERY, soak.seconds / SAMPLES)
    due, at = every, 0.0
    while at < soak.seconds:
        await asyncio.sleep(LIST_EVERY)
        at = time.perf_counter() - began
        log.runs.update(await asyncio.to_thread(lambda: dict(sizes_of_files(pot / "streams"))))
        if at >= due:
            due += every
            footprint = await asyncio.to_thread(measure_footprint, pid, pot)
            log.samples.append(Sample(at, footprint, log.invoked, log.fresh))
            log.invoked, log.fresh = [], []


@dataclass(frozen=True)
class Metric:
    """A value of a sample: its panel in the plot, its name, and whether it must be flat."""

    panel: str
    name: str
    value: Callable[[Sample], float | None]
    flat: bool = False

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return "" if self.panel == _COUNT else self.panel.rpartition(" ")[2]


def _p50(times: Sequence[float]) -> float | None:
    return 1000 * statistics.median(times) if times else None


_MEMORY, _DISK, _COUNT, _LATENCY = "memory, MB", "disk, MB", "files and maps", "latency, ms"
METRICS = (
    Metric(_MEMORY, "anonymous memory", lambda sample: sample.footprint.anonymous / 1e6, flat=True),
    Metric(_MEMORY, "mapped files in memory", lambda sample: sample.footprint.mapped / 1e6, flat=True),
    Metric(_MEMORY, "Java and workers", lambda sample: sample.footprint.others / 1e6),
    Metric(_DISK, "all files of the pot", lambda sample: sample.footprint.disk / 1e6, flat=True),
    Metric(_DISK, "inbox", lambda sample: sample.footprint.inbox / 1e6),
    Metric(_DISK, "catalog's WAL", lambda sample: sample.footprint.wal / 1e6),
    Metric(_COUNT, "files in the pot", lambda sample: sample.footprint.files, flat=True),
    Metric(_COUNT, "maps of the pot's files", lambda sample: sample.footprint.run_maps, flat=True),
    Metric(_COUNT, "maps of deleted files", lambda sample: sample.footprint.deleted_maps),
    Metric(_LATENCY, "invocation, p50", lambda sample: _p50(sample.invoked), flat=True),
    Metric(_LATENCY, "from a push to its commit, p50", lambda sample: _p50(sample.fresh)),
)


def report_on(report: Report, log: SoakLog, soak: Soak) -> None:
    """Report the metrics, and whether they were flat."""
    report.note(
        f"{soak.description()}; {SELECTIONS} selections and {GROUPINGS} aggregates over all of them are invoked"
    )
    report.add("rows pushed", log.rows / soak.seconds, "rows/s")
    report.add("requests that failed", log.failures.total(), "", "<= 0")
    for failure, count in log.failures.most_common(5):
        report.note(f"{count} × {failure}")
    report.add("bytes of runs written for a row", sum(log.runs.values()) / max(1, log.rows), "bytes")
    report.add("files of runs written in a second", len(log.runs) / soak.seconds, "")
    for metric in METRICS:
        early, late = (_median(metric, log.samples, begin, end) for begin, end in ((0.2, 0.4), (0.8, 1.0)))
        most = max((value for value in map(metric.value, log.samples) if value is not None), default=0.0)
        report.add(f"{metric.name}, second fifth of the time", early, metric.unit)
        report.add(f"{metric.name}, last fifth", late, metric.unit)
        report.add(f"{metric.name}, the most", most, metric.unit)
        if metric.flat:
            report.add(f"{metric.name}, last fifth / second", late / early if early else 1.0, "times", f"<= {FLAT}")


def _median(metric: Metric, samples: Sequence[Sample], begin: float, end: float) -> float:
    """The median of a metric in a part of the time; 0 without samples."""
    part = samples[int(begin * len(samples)) : int(end * len(samples)) or 1]
    values = [value for value in map(metric.value, part) if value is not None]
    return statistics.median(values) if values else 0.0


def write_table(path: Path, samples: Sequence[Sample]) -> None:
    """Write the samples as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["minutes", *(" ".join((metric.name, metric.unit)).strip() for metric in METRICS)])
        for sample in samples:
            values = (metric.value(sample) for metric in METRICS)
            table.writerow([f"{sample.at / 60:.2f}", *("" if value is None else f"{value:.6g}" for value in values)])


def _plot(path: Path, log: SoakLog, soak: Soak) -> None:
    def paint(axes: Any, panel: str) -> None:
        for metric in (metric for metric in METRICS if metric.panel == panel):
            points = [(sample.at / 60, value) for sample in log.samples if (value := metric.value(sample)) is not None]
            if points:
                axes.plot(*zip(*points, strict=True), linewidth=1, label=metric.name)
        if panel == _LATENCY:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set(ylabel=panel, xlabel="minutes")

    panels = [partial(paint, panel=panel) for panel in dict.fromkeys(metric.panel for metric in METRICS)]
    draw(path, soak.description(), *panels, height=2.2, width=9)
