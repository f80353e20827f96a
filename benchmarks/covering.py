"""Lazy queries that are answered from a derived stream with a hundredth of the tuples of their base stream."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine

SCHEMA = "ra DOUBLE, dec DOUBLE, dx INT, dy INT, en DOUBLE, ts TIMESTAMP"
START = 1_767_225_600_000_000
ROUNDS = 40
PART = 65_536

REGION = "ra >= 100.0 AND ra < 103.6"
"""A hundredth of the sky."""

QUERIES = {
    "ranges of three columns": f"SELECT ra, dec, en FROM photons WHERE {REGION} AND dec > 80.0 AND en > 2.0",
    "a comparison of columns": f"SELECT ra, dec FROM photons WHERE {REGION} AND dx < dy AND en > 2.5",
    "an expression": f"SELECT ra, dec FROM photons WHERE {REGION} AND dec > 0 AND sqrt(en) > 1.6",
}


def measure(root: Path, report: Report, scale: Scale) -> None:
    """The time of each query from the derived stream and from the base stream, whose answers must be equal."""
    engine = ManualEngine(root / "covering")
    engine.create_stream("photons", SCHEMA, time="ts", clock="stream")
    for start in range(0, scale.covered_rows, PART):
        engine.push("photons", _photons(start, min(PART, scale.covered_rows - start)))
    engine.seal(everything=True)
    engine.derive_stream("region", f"SELECT * FROM photons WHERE {REGION}")
    engine.derive()
    engine.take("region")
    engine.seal(everything=True)
    base = Invoker(engine.catalog)
    ratios: dict[str, float] = {}
    for name, sql in QUERIES.items():
        handle = engine.register(sql, materialize=False)
        plan = engine.invoker.explain(handle)["reuse"]
        assert plan is not None, "the derived stream is not used"
        expected = base.invoke(handle)
        assert engine.invoke(handle).table.equals(expected.table), f"wrong answer for {name}"
        times: dict[str, list[float]] = {"derived": [], "base": []}
        for _ in range(ROUNDS):
            for kind, invoker in (("derived", engine.invoker), ("base", base)):
                began = perf_counter()
                invoker.invoke(handle)
                times[kind].append(perf_counter() - began)
        report.add(f"{name} ({len(expected)} rows), from the derived stream", 1e3 * median(times["derived"]), "ms p50")
        report.add(f"{name}, from the base stream", 1e3 * median(times["base"]), "ms p50")
        ratios[name] = median(times["base"]) / median(times["derived"])
        report.add(f"base stream / derived stream, {name}", ratios[name], "times")
    report.add("tuples of the base stream / of the derived stream", plan["of"] / plan["tuples"], "times")
    # Ranges are looked up in the index of the base stream, in a few block operations.
    report.reach("covered", ratios["an expression"])
    engine.close()


def _photons(start: int, count: int) -> pa.Table:
    generator = np.random.default_rng(start)
    return pa.table(
        {
            "ra": generator.uniform(0, 360, count),
            "dec": generator.uniform(-90, 90, count),
            "dx": generator.integers(0, 512, count).astype(np.int32),
            "dy": generator.integers(0, 512, count).astype(np.int32),
            "en": generator.lognormal(0.0, 0.6, count),
            "ts": pa.array(START + 1_000 * np.arange(start, start + count), pa.timestamp("us", tz="UTC")),
        }
    )
