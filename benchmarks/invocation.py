"""(c) Invocation over a window of a million rows, compared with DuckDB from scratch on the same Arrow table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

import tureen
from benchmarks.report import Report
from benchmarks.workload import SCHEMA, START, tuples
from tureen.window import from_micros

ROWS = 1_048_576
CASES = {
    "selective, 2 factors": "a = 17 AND b = 211",
    "selective, 4 factors": "a = 17 AND b BETWEEN 100 AND 140 AND c > 200 AND d < 128",
    "0.4 % of the rows": "a = 17",
    "16 % of the rows": "a < 128 AND b < 84",
}


def p50(call: Callable[[], object], times: int) -> float:
    """The median duration of `times` calls, in milliseconds."""
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        durations.append(time.perf_counter() - began)
    return statistics.median(durations) * 1000


def _from_scratch(duck: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return duck.sql(sql).to_arrow_table()


def measure(root: Path, report: Report) -> None:
    """Each case eager, then by DuckDB, then lazy; the window contains exactly the million rows."""
    table = tuples(ROWS, 1)
    now = from_micros(START + 2 * ROWS - 1)
    begin = from_micros(START + ROWS)
    with tureen.open(root / "invoke", mode="write") as soup:
        soup.create_stream("r", SCHEMA, time="ts")
        soup.push("r", tuples(ROWS, 0))
        at = soup.push("r", table)
        window = f"BEGIN NOW - {(now - begin) / timedelta(seconds=1):.6f} END NOW"
        eager = {
            name: soup.register(f"SELECT * FROM r WHERE {where} {window}", materialize=True)
            for name, where in CASES.items()
        }
        soup.wait(at, timeout=120)
        soup.settle()
        duck = duckdb.connect()
        duck.register("r", table)
        durations: list[float] = []
        ratios: list[float] = []
        for name, where in CASES.items():
            sql = f"SELECT * FROM r WHERE {where} AND ts BETWEEN '{begin}' AND '{now}'"
            expected: pa.Table = duck.sql(sql).to_arrow_table()
            answer = eager[name].invoke(now=now)
            assert answer.table.equals(expected.cast(answer.table.schema)), f"wrong answer for {name}"
            ours = p50(partial(eager[name].invoke, now=now), 300)
            theirs = p50(partial(_from_scratch, duck, sql), 30)
            report.add(f"invoke, {name} ({len(answer)} rows)", ours, "ms p50")
            report.add(f"DuckDB / invoke, {name}", theirs / ours, "times")
            if name.startswith("selective"):
                durations.append(ours)
                ratios.append(theirs / ours)
        report.reach("invoke", max(durations))
        report.reach("invoke ratio", min(ratios))
        for handle in eager.values():
            handle.unregister()
        for name, where in CASES.items():
            lazy = soup.register(f"SELECT * FROM r WHERE {where} {window}", materialize=False)
            report.add(f"invoke, lazy, {name}", p50(partial(lazy.invoke, now=now), 100), "ms p50")
