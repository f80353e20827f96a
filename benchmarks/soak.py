"""A server that is pushed to for long: its memory, its files and its latency must be flat.

Small pushes come at a steady rate into a stream with a short retention, while some clients invoke. From time to time it
is looked at what the server takes (see `benchmarks/footprint.py`). All of it must be as much at the end as it was once
the retention was full.

A soak can be compressed: with a tenth of the retention and ten times the rate, a tenth of the time has as many rows,
runs and merges. What goes by the clock, like the grace of replaced files, is not compressed with it.
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

from benchmarks.footprint import Footprint, look, sizes_of_files
from benchmarks.plot import draw
from benchmarks.report import Report
from benchmarks.service import ARROW, SCHEMA, Socket, rows_of, serving, stream_of

PUSH_EVERY = 0.1
LIST_EVERY = 2.0
SAMPLES = 240
"""How many times it is looked at what the server takes."""

INVOKE_EVERY = 0.02
"""Seconds from one invocation to the next; it waits for each."""

SELECTIONS, GROUPINGS = 56, 8
FLAT = 1.2
"""The most that anything may grow from the second fifth of the time to the last."""


@dataclass(frozen=True)
class Soak:
    """How long, with how many rows in a second, and how many seconds of them are kept."""

    seconds: float = 3600.0
    rate: int = 2_000
    retain: int = 120

    def said(self) -> str:
        """What a page says of it."""
        return f"{self.seconds / 60:.3g} minutes of {self.rate:,} rows/s, of which {self.retain} seconds are retained"


@dataclass
class Sample:
    """What was seen at one moment; latencies are of the time since the last one, in seconds."""

    at: float
    footprint: Footprint
    invoked: list[float]
    fresh: list[float]


@dataclass
class Seen:
    """All that was seen."""

    samples: list[Sample] = field(default_factory=list)
    invoked: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    rows: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Requests that did not succeed, by what they asked for and what was answered."""
    runs: dict[str, int] = field(default_factory=dict)
    """The size of every file of a stream that was there when a sample was taken."""


def measure(root: Path, report: Report, soak: Soak) -> None:
    """Serve, push and invoke for so long, and report what became of the server."""
    pot = root / "soak"
    with serving(pot) as (process, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as http:
            while http.get("/healthz").status_code != 200:
                time.sleep(0.2)
            stream = {"name": "s", "schema": SCHEMA, "time": "ts", "retain": f"{soak.retain} seconds"}
            http.post("/v1/streams", json=stream).raise_for_status()
            handles = [_register(http, sql) for sql in _queries(soak)]
            seen = asyncio.run(_load(url, token, handles, process.pid, pot, soak))
            assert http.get("/healthz").status_code == 200, "the server is not well after the load"
            metrics = http.get("/metrics").text
    assert not re.search(r'route="/v1[^}]*status="5\d\d"', metrics), "the server had mistakes"
    write_table(report.folder / "soak.csv", seen.samples)
    report_on(report, seen, soak)
    _plot(report.plot("soak.svg", f"Tureen: {soak.said()}"), seen, soak)


def _queries(soak: Soak) -> list[str]:
    window = f"BEGIN NOW - {soak.retain} SECONDS END NOW"
    found = [
        f"SELECT a, b, ts FROM s WHERE a = {number} AND b BETWEEN {4 * number} AND {4 * number + 15} {window}"
        for number in range(SELECTIONS)
    ]
    return found + [
        f"SELECT c % 16 AS g, count(*) AS n, sum(d) AS total FROM s WHERE b > {30 * number} GROUP BY c % 16 {window}"
        for number in range(GROUPINGS)
    ]


def _register(http: httpx.Client, sql: str) -> str:
    response = http.post("/v1/queries", json={"sql": sql})
    response.raise_for_status()
    return str(response.json()["id"])


async def _load(url: str, token: str, handles: list[str], pid: int, pot: Path, soak: Soak) -> Seen:
    seen, began = Seen(), time.perf_counter()
    until = began + soak.seconds
    pushed: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    await asyncio.gather(
        _push(await Socket.open(url, token), seen, soak, until, pushed),
        _invoke(await Socket.open(url, token), seen, handles, until),
        _watch(await Socket.open(url, token), seen, until, pushed),
        _sample(seen, pid, pot, soak, began),
    )
    return seen


async def _push(socket: Socket, seen: Seen, soak: Soak, until: float, pushed: asyncio.Queue[tuple[str, float]]) -> None:
    due, count = time.perf_counter(), int(soak.rate * PUSH_EVERY)
    while time.perf_counter() < until:
        status, body = await socket.ask("POST", "/v1/streams/s/rows", stream_of(rows_of(count)), ARROW)
        if status == 202:
            seen.rows += count
            pushed.put_nowait((json.loads(body)["position"], time.perf_counter()))
        else:
            seen.failed[f"push: {status} {body[:200]!r}"] += 1
        due += PUSH_EVERY
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _invoke(socket: Socket, seen: Seen, handles: Sequence[str], until: float) -> None:
    number = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        status, body = await socket.ask("GET", f"/v1/queries/{handles[number % len(handles)]}/result")
        seen.invoked.append(time.perf_counter() - began)
        if status != 200:
            seen.failed[f"invoke: {status} {body[:200]!r}"] += 1
        number += 1
        await asyncio.sleep(INVOKE_EVERY)


async def _watch(socket: Socket, seen: Seen, until: float, pushed: asyncio.Queue[tuple[str, float]]) -> None:
    """Wait for the newest push, again and again: how old it is when it is in."""
    while time.perf_counter() < until:
        try:
            position, at = await asyncio.wait_for(pushed.get(), 1)
        except TimeoutError:
            continue
        while not pushed.empty():
            position, at = pushed.get_nowait()
        status, body = await socket.ask("GET", f"/v1/wait?position={position}&timeout=60")
        if status >= 300:
            seen.failed[f"wait: {status} {body[:200]!r}"] += 1
        seen.fresh.append(time.perf_counter() - at)


async def _sample(seen: Seen, pid: int, pot: Path, soak: Soak, began: float) -> None:
    """Look at the server now and then, and at the files of runs so often that none of them is missed."""
    every = max(LIST_EVERY, soak.seconds / SAMPLES)
    due, at = every, 0.0
    while at < soak.seconds:
        await asyncio.sleep(LIST_EVERY)
        at = time.perf_counter() - began
        seen.runs.update(await asyncio.to_thread(lambda: dict(sizes_of_files(pot / "streams"))))
        if at >= due:
            due += every
            footprint = await asyncio.to_thread(look, pid, pot)
            seen.samples.append(Sample(at, footprint, seen.invoked, seen.fresh))
            seen.invoked, seen.fresh = [], []


@dataclass(frozen=True)
class Kind:
    """Something that is plotted: in which panel, its name, how it is taken from a sample, whether it must be flat."""

    panel: str
    name: str
    value: Callable[[Sample], float | None]
    flat: bool = False

    @property
    def unit(self) -> str:
        """What it is counted in."""
        return "" if self.panel == _COUNT else self.panel.rpartition(" ")[2]


def _p50(times: Sequence[float]) -> float | None:
    return 1000 * statistics.median(times) if times else None


_MEMORY, _DISK, _COUNT, _LATENCY = "memory, MB", "disk, MB", "files and maps", "latency, ms"
KINDS = (
    Kind(_MEMORY, "anonymous memory", lambda sample: sample.footprint.anonymous / 1e6, flat=True),
    Kind(_MEMORY, "mapped files in memory", lambda sample: sample.footprint.mapped / 1e6, flat=True),
    Kind(_MEMORY, "Java and workers", lambda sample: sample.footprint.others / 1e6),
    Kind(_DISK, "all files of the pot", lambda sample: sample.footprint.disk / 1e6, flat=True),
    Kind(_DISK, "inbox", lambda sample: sample.footprint.inbox / 1e6),
    Kind(_DISK, "catalog's WAL", lambda sample: sample.footprint.wal / 1e6),
    Kind(_COUNT, "files in the pot", lambda sample: sample.footprint.files, flat=True),
    Kind(_COUNT, "maps of the pot's files", lambda sample: sample.footprint.run_maps, flat=True),
    Kind(_COUNT, "maps of deleted files", lambda sample: sample.footprint.deleted_maps),
    Kind(_LATENCY, "invocation, p50", lambda sample: _p50(sample.invoked), flat=True),
    Kind(_LATENCY, "from a push to its commit, p50", lambda sample: _p50(sample.fresh)),
)


def report_on(report: Report, seen: Seen, soak: Soak) -> None:
    """Say what was seen, and whether it was flat."""
    report.note(f"{soak.said()}; {SELECTIONS} selections and {GROUPINGS} aggregates over all of them are invoked")
    report.add("rows pushed", seen.rows / soak.seconds, "rows/s")
    report.add("requests that failed", seen.failed.total(), "", "<= 0")
    for failure, count in seen.failed.most_common(5):
        report.note(f"{count} × {failure}")
    report.add("bytes of runs written for a row", sum(seen.runs.values()) / max(1, seen.rows), "bytes")
    report.add("files of runs written in a second", len(seen.runs) / soak.seconds, "")
    for kind in KINDS:
        early, late = (_median(kind, seen.samples, begin, end) for begin, end in ((0.2, 0.4), (0.8, 1.0)))
        most = max((value for value in map(kind.value, seen.samples) if value is not None), default=0.0)
        report.add(f"{kind.name}, second fifth of the time", early, kind.unit)
        report.add(f"{kind.name}, last fifth", late, kind.unit)
        report.add(f"{kind.name}, the most", most, kind.unit)
        if kind.flat:
            report.add(f"{kind.name}, last fifth / second", late / early if early else 1.0, "times", f"<= {FLAT}")


def _median(kind: Kind, samples: Sequence[Sample], begin: float, end: float) -> float:
    """The median of what samples in a part of the time say; 0 where they say nothing."""
    part = samples[int(begin * len(samples)) : int(end * len(samples)) or 1]
    values = [value for value in map(kind.value, part) if value is not None]
    return statistics.median(values) if values else 0.0


def write_table(path: Path, samples: Sequence[Sample]) -> None:
    """Keep what was seen as a table, one line for each sample."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["minutes", *(" ".join((kind.name, kind.unit)).strip() for kind in KINDS)])
        for sample in samples:
            values = (kind.value(sample) for kind in KINDS)
            table.writerow([f"{sample.at / 60:.2f}", *("" if value is None else f"{value:.6g}" for value in values)])


def _plot(path: Path, seen: Seen, soak: Soak) -> None:
    def paint(axes: Any, panel: str) -> None:
        for kind in (kind for kind in KINDS if kind.panel == panel):
            known = [(sample.at / 60, value) for sample in seen.samples if (value := kind.value(sample)) is not None]
            if known:
                axes.plot(*zip(*known, strict=True), linewidth=1, label=kind.name)
        if panel == _LATENCY:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set(ylabel=panel, xlabel="minutes")

    panels = [partial(paint, panel=panel) for panel in dict.fromkeys(kind.panel for kind in KINDS)]
    draw(path, soak.said(), *panels, height=2.2, width=9)
