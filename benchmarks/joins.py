"""Joins when asked for, compared with DuckDB from scratch on the same rows.

Selective joins of a million by a million rows; 16,384 tuples that probe six million. How the cost grows with the
number of inputs and with the windows is in `join_growth`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import tureen
from benchmarks.invocation import p50
from benchmarks.report import Report
from benchmarks.scale import Scale

COLUMNS = "k BIGINT, x INT, v DOUBLE, ts TIMESTAMP"
START = 1_700_000_000_000_000
SHARES = {"0.1 %": 1, "1 %": 10, "10 %": 100}
"""The conditions `x < n` of both sides, and the share of the rows that satisfy each: x is uniform below 1,000."""


def rows_of(size: int, seed: int) -> pa.Table:
    """Rows with keys that are uniform in their number."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": random.integers(0, size, size),
            "x": random.integers(0, 1000, size).astype(np.int32),
            "v": random.random(size),
            "ts": pa.array(START + np.arange(size) * 1000).cast(pa.timestamp("us", "UTC")),
        }
    )


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure all of them."""
    size = scale.join_rows
    tables = {"a": rows_of(size, 1), "b": rows_of(size, 2), "large": rows_of(6 * size, 3)}
    with tureen.open(root / "joins", mode="write") as soup:
        duck = duckdb.connect()
        for name, table in tables.items():
            soup.create_stream(name, COLUMNS, time="ts", clock="stream")
            for first in range(0, len(table), 1 << 20):
                soup.push(name, table.slice(first, 1 << 20))
            duck.register(f"{name}_arrow", table)
            duck.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
        soup.settle()
        _selective(soup, duck, report)
        _probing(soup, duck, report, min(16_384, size))


def _selective(soup: tureen.Soup, duck: duckdb.DuckDBPyConnection, report: Report) -> None:
    """A share of each side."""
    for share, limit in SHARES.items():
        sql = f"SELECT a.k, a.v, b.v AS w FROM {{a}} a JOIN {{b}} b ON a.k = b.k WHERE a.x < {limit} AND b.x < {limit}"
        ours, theirs = _compared(soup, duck, sql)
        report.add(f"join, {share} of each side, lazy", ours, "ms p50")
        report.add(f"DuckDB over Arrow / join, {share} of each side", theirs / ours, "times")
        kept = _kept(soup, sql.format(a="a", b="b"))
        report.add(f"join, {share} of each side, kept", kept, "ms p50")
        report.add(f"DuckDB over Arrow / join, {share} of each side, kept", theirs / kept, "times")
        if share == "0.1 %":
            report.reach("join", ours)
            report.reach("join ratio", theirs / ours)
            report.reach("join kept p50", kept)
            report.reach("join kept ratio", theirs / kept)


def _kept(soup: tureen.Soup, sql: str) -> float:
    """The milliseconds of an invocation whose join is kept, once it has returned the same rows."""
    lazy, query = soup.register(sql, materialize=False), soup.register(sql, materialize=True)
    soup.settle()
    assert query.explain()["kept_join"]["used"], "the join is not kept"
    assert query.invoke().table.equals(lazy.invoke().table), f"wrong answer of {sql}"
    milliseconds = p50(query.invoke, 100)
    lazy.unregister()
    query.unregister()
    return milliseconds


def _probing(soup: tureen.Soup, duck: duckdb.DuckDBPyConnection, report: Report, probes: int) -> None:
    """The latest tuples of one stream with all of another."""
    query = soup.register(f"SELECT count(*) AS n FROM a [ROWS {probes}] JOIN large b ON a.k = b.k", materialize=False)
    duck.execute(f"CREATE TABLE probes AS SELECT * FROM a ORDER BY ts DESC LIMIT {probes}")
    from_table, from_arrow = (
        f"SELECT count(*) AS n FROM probes a JOIN {name} b ON a.k = b.k" for name in ("large", "large_arrow")
    )
    assert query.invoke().table.to_pylist() == _run(duck, from_table).to_pylist(), "wrong number of joined rows"
    ours = p50(query.invoke, 20)
    report.add(f"{probes:,} tuples probe the large stream", ours, "ms p50")
    report.reach("probe table", p50(partial(_run, duck, from_table), 10) / ours)
    report.reach("probe arrow", p50(partial(_run, duck, from_arrow), 5) / ours)
    query.unregister()


def _compared(soup: tureen.Soup, duck: duckdb.DuckDBPyConnection, sql: str, times: int = 30) -> tuple[float, float]:
    """The milliseconds of an invocation and of DuckDB over Arrow, once both have returned the same rows."""
    over_arrow = sql.format(a="a_arrow", b="b_arrow")
    query = soup.register(sql.format(a="a", b="b"), materialize=False)
    answer = sorted(tuple(row.values()) for row in query.invoke())
    assert answer == sorted(duck.execute(over_arrow).fetchall()), f"wrong answer of {sql}"
    ours = p50(query.invoke, times)
    theirs = p50(partial(_run, duck, over_arrow), max(times // 5, 3))
    query.unregister()
    return ours, theirs


def _run(duck: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return duck.sql(sql).to_arrow_table()
