"""(e) Aggregates over a window of a million rows, compared with DuckDB from scratch; and their cost by window size.

Tuples are a microsecond apart, so a window of N microseconds contains N rows. The edges of windows are not aligned
with runs, blocks or steps, and each invocation has a different NOW.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import tureen
from benchmarks.invocation import p50
from benchmarks.plot import draw_growth
from benchmarks.report import RESULTS, Report
from benchmarks.workload import SCHEMA, START, tuples
from tureen.window import from_micros

ROWS = 1 << 20
STEP = 16_127
"""The length of a step: of the 65 steps that begin in the window at least 64 are whole."""
PANE = 4_001
"""A quarter of an overlapping step."""

NOW = START + 2 * ROWS - 77_777
BEGIN = NOW - ROWS + 1
NOWS = [from_micros(NOW - 97 * number) for number in range(499)]
SIZES = [1 << power for power in range(10, 21)]
CALLS = 300
PUSHES, PUSHED = 8, 128


@dataclass(frozen=True)
class AggregateQuery:
    """A query without its window, and DuckDB's equivalent over a table `r` of the window's rows."""

    name: str
    tureen_sql: str
    duckdb_sql: str

    def windowed(self, rows: int) -> str:
        """The query over a window of that many rows."""
        return f"{self.tureen_sql} BEGIN NOW - {(rows - 1) / 1e6:.6f} END NOW"


ALL = "count(*) AS n, sum(a) AS total, avg(b) AS mean, min(c) AS least, max(d) AS most"
UNGROUPED = AggregateQuery("ungrouped", f"SELECT {ALL} FROM r", f"SELECT {ALL} FROM r")
BY_COLUMN = AggregateQuery("256 groups", f"SELECT a, {ALL} FROM r GROUP BY a", f"SELECT a, {ALL} FROM r GROUP BY a")
SHAPES = (
    UNGROUPED,
    AggregateQuery(
        "WHERE, 16 % of the rows",
        f"SELECT {ALL} FROM r WHERE a < 128 AND b < 84",
        f"SELECT {ALL} FROM r WHERE a < 128 AND b < 84",
    ),
    AggregateQuery(
        "WHERE, 0.4 % of the rows", f"SELECT {ALL} FROM r WHERE a = 17", f"SELECT {ALL} FROM r WHERE a = 17"
    ),
    BY_COLUMN,
    AggregateQuery(
        "4,096 groups of an expression",
        "SELECT a DIV 4 * 64 + b DIV 4 AS k, count(*) AS n, sum(c) AS total FROM r GROUP BY k",
        "SELECT a // 4 * 64 + b // 4 AS k, count(*) AS n, sum(c) AS total FROM r GROUP BY k",
    ),
    AggregateQuery(
        "stddev in 256 groups",
        "SELECT a, stddev(b) AS b, stddev_pop(c) AS c FROM r GROUP BY a",
        "SELECT a, stddev_samp(b) AS b, stddev_pop(c) AS c FROM r GROUP BY a",
    ),
    AggregateQuery(
        "64 steps × 8 groups",
        f"""SELECT window_start, a % 8 AS k, count(*) AS n, sum(b) AS total
        FROM r [TUMBLE {STEP} MICROSECONDS] GROUP BY a % 8""",
        f"""SELECT make_timestamp(step * {STEP}) AS window_start, k, n, total
        FROM (SELECT epoch_us(ts) // {STEP} AS step, a % 8 AS k, count(*) AS n, sum(b) AS total FROM r GROUP BY ALL)
        WHERE step * {STEP} >= {BEGIN} AND (step + 1) * {STEP} <= {NOW}""",
    ),
    AggregateQuery(
        "258 overlapping steps × 8 groups",
        f"""SELECT window_start, a % 8 AS k, count(*) AS n, sum(b) AS total
        FROM r [RANGE {4 * PANE} MICROSECONDS SLIDE {PANE} MICROSECONDS] GROUP BY a % 8""",
        # Aggregated by panes, four for each step: the cheapest form in DuckDB.
        f"""SELECT make_timestamp(step * {PANE}) AS window_start, k, sum(n) AS n, sum(total) AS total
        FROM (SELECT unnest([pane, pane - 1, pane - 2, pane - 3]) AS step, k, n, total FROM (
            SELECT epoch_us(ts) // {PANE} AS pane, a % 8 AS k, count(*) AS n, sum(b) AS total FROM r GROUP BY ALL))
        WHERE step * {PANE} >= {BEGIN} AND (step + 4) * {PANE} <= {NOW} GROUP BY step, k""",
    ),
)
GROWING = (UNGROUPED, BY_COLUMN)


def measure(root: Path, report: Report) -> None:
    """Each query over the million rows, then the cost by window size, then the cost after a small push."""
    with tureen.open(root / "aggregate", mode="write") as soup:
        soup.create_stream("r", SCHEMA, time="ts")
        parts = [tuples(ROWS, seed) for seed in (0, 1)]
        for part in parts:
            soup.push("r", part)
        handles = [soup.register(shape.windowed(ROWS)) for shape in SHAPES]
        soup.settle()
        window_rows = pa.concat_tables(parts).slice(BEGIN - START, ROWS).combine_chunks()
        for shape, handle in zip(SHAPES, handles, strict=True):
            _compare(shape, handle, window_rows, report)
        _grow(soup, report)
        _after_pushes(soup, handles, report)


def _compare(shape: AggregateQuery, handle: tureen.StandingQuery, window_rows: pa.Table, report: Report) -> None:
    filtering = duckdb.connect()
    filtering.register("held", window_rows)
    filtering.execute(f"CREATE VIEW r AS FROM held WHERE ts BETWEEN '{from_micros(BEGIN)}' AND '{from_micros(NOW)}'")
    # The same without a filter on time: the cost of the aggregate alone.
    prefiltered = duckdb.connect()
    prefiltered.register("r", window_rows)
    began = time.perf_counter()
    answer = handle.invoke(now=NOWS[0])
    built = (time.perf_counter() - began) * 1000
    verify(shape.name, answer.table, _from_scratch(filtering, shape))
    ours = p50(_at_each_now(handle), CALLS)
    report.add(f"aggregate, {shape.name}, first invocation", built, "ms")
    report.add(f"aggregate, {shape.name}", ours, "ms p50", "<= 2")
    theirs = p50(partial(_from_scratch, filtering, shape), 30)
    report.add(f"DuckDB / aggregate, {shape.name}", theirs / ours, "times", ">= 20")
    theirs = p50(partial(_from_scratch, prefiltered, shape), 30)
    report.add(f"DuckDB, handed the window's rows / aggregate, {shape.name}", theirs / ours, "times")


def _from_scratch(duck: duckdb.DuckDBPyConnection, shape: AggregateQuery) -> pa.Table:
    return duck.sql(shape.duckdb_sql).to_arrow_table()


def _at_each_now(handle: tureen.StandingQuery) -> Callable[[], object]:
    nows = cycle(NOWS)
    return lambda: handle.invoke(now=next(nows))


def verify(name: str, ours: pa.Table, theirs: pa.Table) -> None:
    """Check that both have the same rows, ours in key order; DOUBLEs may differ by the order of addition."""
    sort_keys = [(column, "ascending") for column in theirs.column_names]
    theirs = theirs.sort_by(sort_keys).cast(ours.schema)
    assert len(ours) == len(theirs), f"{len(ours)} rows instead of {len(theirs)} for {name}"
    for column, our_values, their_values in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        near = (
            np.allclose(our_values, their_values, rtol=1e-9, atol=0)
            if pa.types.is_float64(our_values.type)
            else our_values.equals(their_values)
        )
        assert near, f"wrong {column} for {name}"


def _grow(soup: tureen.Soup, report: Report) -> None:
    """The cost of an invocation by the size of its window."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for shape in GROWING:
        handles = {rows: soup.register(shape.windowed(rows)) for rows in SIZES}
        soup.settle()
        calls = {rows: _at_each_now(handle) for rows, handle in handles.items()}
        for rows, handle in handles.items():
            counts = handle.invoke(now=NOWS[0]).table.column("n").to_pylist()
            assert sum(counts) == rows, f"a window of {rows} rows holds {sum(counts)}"
        milliseconds: dict[int, list[float]] = {rows: [] for rows in SIZES}
        # In turns, so that other load on the machine affects all sizes equally.
        for _ in range(CALLS):
            for rows, call in calls.items():
                milliseconds[rows].append(p50(call, 1))
        curve = curves[shape.name] = [(rows, statistics.median(milliseconds[rows])) for rows in SIZES]
        for rows, cost in curve:
            report.add(f"aggregate, {shape.name}, window of {rows:,} rows", cost, "ms p50")
        growth = curve[-1][1] / curve[0][1]
        # (log 2^20 / log 2^10)^2 = 4
        report.add(f"aggregate, {shape.name}, 2^20 rows / 2^10 rows", growth, "times", "<= 4")
        for handle in handles.values():
            handle.unregister()
    draw_growth(RESULTS / "aggregate.svg", "An aggregate's invocation, by the size of its window", curves)


def _after_pushes(soup: tureen.Soup, handles: list[tureen.StandingQuery], report: Report) -> None:
    """The cost of the first invocation after a push of rows into the window."""
    milliseconds: dict[str, list[float]] = {shape.name: [] for shape in SHAPES}
    for seed in range(2 * ROWS // PUSHED, 2 * ROWS // PUSHED + PUSHES):
        soup.push("r", tuples(PUSHED, seed))
        now = from_micros(START + (seed + 1) * PUSHED - 1)
        for shape, handle in zip(SHAPES, handles, strict=True):
            milliseconds[shape.name].append(p50(partial(handle.invoke, now=now), 1))
        counts = handles[0].invoke(now=now).table.column("n").to_pylist()
        assert counts == [ROWS], f"a window of {ROWS} rows holds {counts}"
    for name, times in milliseconds.items():
        report.add(f"aggregate, {name}, right after a push of {PUSHED} rows", statistics.median(times), "ms p50")
