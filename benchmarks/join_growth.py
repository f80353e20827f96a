"""The growth of a join's invocation with the number of its inputs and with the size of its windows.

DuckDB joins the same Arrow tables from scratch, and answers must equal its rows before anything is timed. The keys of
the streams `a` and `b` are random. The tuples of `near` and `partner` with the same key are at most 1,024 tuples apart,
and each has exactly one partner, so that the number of joined tuples grows with the window only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.invocation import p50
from benchmarks.joins import COLUMNS, START, rows_of
from benchmarks.nexmark import run, verify
from benchmarks.plot import Curves, draw_curves
from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.testing.manual_engine import ManualEngine
from tureen.window import from_micros

NEAR = 1_024
"""The number of consecutive tuples of each stream that have the same keys."""

MOST_INPUTS = 8

LAZY, KEPT, DUCKDB = "evaluated", "kept", "DuckDB over Arrow"
STREAMS = {"random keys": ("a", "b"), "one partner each": ("near", "partner")}
"""The streams of the joins with several inputs, by their keys. Joins of random keys have more rows with each input."""

SHARES = {"all tuples": "", "1 % of the first": " WHERE a.x < 10"}
"""The conditions of the joins over windows: x is uniform below 1,000."""


Points = dict[str, list[tuple[float, float]]]
"""Curves that grow."""


class GrowthFindings(NamedTuple):
    """The measurements in milliseconds, for plotting."""

    inputs: Curves
    windows: Curves


def measure(root: Path, report: Report, scale: Scale) -> GrowthFindings:
    """Measure invocations by number of inputs, then by size of the windows."""
    size = scale.join_rows
    tables = {name: rows_of(size, seed) for seed, name in enumerate("ab", 1)}
    tables |= {name: near_rows(size, seed) for seed, name in enumerate(("near", "partner"), 3)}
    with closing(ManualEngine(root / "join_growth")) as engine, duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            engine.create_stream(name, COLUMNS, time="ts", clock="stream")
            engine.push(name, table)
            duck.register(f"{name}_arrow", table)
        inputs = _by_inputs(engine, duck, report, scale.growth_rounds)
        sizes = [size >> shift for shift in range(8, -1, -2)]
        return GrowthFindings(inputs, _by_windows(engine, duck, report, sizes, scale.growth_rounds))


def near_rows(size: int, seed: int) -> pa.Table:
    """Rows in which every `NEAR` consecutive ones have the same keys in all tables, in another order."""
    random = np.random.default_rng(seed)
    groups = np.arange(size) // NEAR
    keys = np.lexsort((random.random(size), groups))
    return rows_of(size, seed).set_column(0, "k", pa.array(keys))


def plot(findings: GrowthFindings, report: Report) -> None:
    """Draw both growths."""
    title = "A join's invocation by the number of its inputs, 0.1 % of the first"
    draw_curves(report.plot("join-inputs.svg", title), title, findings.inputs, x="inputs", y="ms, p50")
    title = "A join's invocation by the size of its windows"
    path = report.plot("join-windows.svg", title)
    draw_curves(path, title, findings.windows, x="tuples in the window of each stream", y="ms, p50", base=2)


def _by_inputs(engine: ManualEngine, duck: duckdb.DuckDBPyConnection, report: Report, rounds: int) -> Points:
    """From two to eight inputs, all joined on the same column, with 0.1 % of the first."""
    curves: Points = {}
    for keys, (first, second) in STREAMS.items():
        for count in range(2, MOST_INPUTS + 1):
            inputs = [f"{(first, second)[number % 2]}{{suffix}} t{number}" for number in range(count)]
            joins = "".join(f" JOIN {entry} ON t{number}.k = t0.k" for number, entry in enumerate(inputs) if number)
            sql = f"SELECT count(*) AS n FROM {inputs[0]}{joins} WHERE t0.x < 1"
            handles = {LAZY: engine.register(sql.format(suffix=""), materialize=False)}
            times, answer = _compared(engine, duck, handles, sql.format(suffix="_arrow"), rounds)
            (joined,) = answer.column("n").to_pylist()
            label = f"join of {count} inputs, {keys}"
            report.add(f"{label}, 0.1 % of the first ({joined:,} joined tuples)", times[LAZY], "ms p50")
            report.add(f"DuckDB over Arrow / {label}", times[DUCKDB] / times[LAZY], "times")
            for name, milliseconds in times.items():
                curves.setdefault(f"{keys}, {name}", []).append((count, milliseconds))
    return curves


def _by_windows(
    engine: ManualEngine, duck: duckdb.DuckDBPyConnection, report: Report, sizes: Sequence[int], rounds: int
) -> Points:
    """Two inputs with windows of the same size."""
    curves: Points = {}
    for share, where in SHARES.items():
        sql = f"SELECT a.k, a.v, b.v AS w FROM {{near}} a JOIN {{partner}} b ON a.k = b.k{where}"
        windowed = {size: _windowed(sql.format(near="near", partner="partner"), size) for size in sizes}
        handles = {
            size: {name: engine.register(of_size, materialize=name == KEPT) for name in (LAZY, KEPT)}
            for size, of_size in windowed.items()
        }
        engine.compile()
        engine.pay()
        engine.keep_joins()
        for size in sizes:
            assert engine.invoker.explain(handles[size][KEPT])["kept_join"]["used"], "the join is not kept"
            times, answer = _compared(engine, duck, handles[size], _from_tables(sql, size, max(sizes)), rounds)
            label = f"{share}, windows of {size:,} ({len(answer):,} joined tuples)"
            for name, milliseconds in times.items():
                report.add(f"join, {label}, {name}", milliseconds, "ms p50")
                curves.setdefault(f"{share}, {name}", []).append((size, milliseconds))
    for label, ((smallest, first), *_, (largest, last)) in curves.items():
        report.add(f"{label}, windows of {largest:,} / {smallest:,}", last / first, "times")
    return curves


def _compared(
    engine: ManualEngine, duck: duckdb.DuckDBPyConnection, handles: Mapping[str, str], sql: str, rounds: int
) -> tuple[dict[str, float], pa.Table]:
    """The median milliseconds of invocations and of DuckDB, once all have returned the same rows; and these rows.

    As in `joins`, each is called several times in a row: right after DuckDB has read whole tables, an invocation of
    a millisecond takes more than twice as long.
    """
    expected = run(duck, sql)
    for name, handle in handles.items():
        verify(f"{sql}, {name}", engine.invoke(handle).table, expected)
    calls: dict[str, Callable[[], object]] = {name: partial(engine.invoke, handle) for name, handle in handles.items()}
    calls[DUCKDB] = partial(run, duck, sql)
    return {name: p50(call, rounds) for name, call in calls.items()}, expected


def _windowed(sql: str, size: int) -> str:
    """The query over windows of `size` tuples, which are a millisecond apart."""
    return f"{sql} BEGIN NOW - {(size - 1) / 1e3:.3f} END NOW"


def _from_tables(sql: str, size: int, rows: int) -> str:
    """The same for DuckDB, over tables of that many rows."""
    begin = f"'{from_micros(START + (rows - size) * 1000)}'"
    first, second = (f"(FROM {name}_arrow WHERE ts >= {begin})" for name in ("near", "partner"))
    return sql.format(near=first, partner=second)
