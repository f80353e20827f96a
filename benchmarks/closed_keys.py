"""Ten million closed keys: memory, look-ups of blocks of rows, and keys that are added one at a time.

Which rows are rejected is compared with NumPy's own set operations before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.scale import Scale
from tureen.closed.closed_set import BatchCodes, ClosedSet
from tureen.closed.key_codes import Codes
from tureen.closed.key_set import NO_MARK
from tureen.closed.pattern import Pattern, ValueList
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.testing.manual_engine import ManualEngine

SCHEMA = Schema.parse("k BIGINT, s STRING")
BLOCK, PUSH, ROUNDS = 65_536, 1_000, 7


def measure(root: Path, report: Report, scale: Scale) -> None:
    """Measure sets of numbers and of texts, and pushes to a stream with and without them."""
    random = np.random.default_rng(1)
    keys = random.permutation(scale.closed_keys) * 7
    closed = ClosedSet(SCHEMA)
    began = time.perf_counter()
    for start in range(0, len(keys), PUSH):
        part = keys[start : start + PUSH]
        codes = Codes(part, None, np.ones(len(part), np.bool_))
        closed.key_set(("k",)).add(codes, np.full(len(part), 1, np.uint32))
    seconds = (time.perf_counter() - began) / len(keys)
    report.add(f"a BIGINT of {len(keys):,}, added {PUSH:,} at a time", seconds * 1e6, "µs")
    report.add("memory of them", closed.keys["k",].nbytes / 1e6, "MB")
    numbers = random.integers(0, 7 * scale.closed_keys, BLOCK)
    users = pa.array([f"user {number}" for number in numbers])
    batch = pa.record_batch([pa.array(numbers), users], schema=SCHEMA.arrow)
    seconds = look_up(closed, batch, np.isin(numbers, keys))
    report.add(f"a row of a block of {BLOCK:,}", seconds * 1e6, "µs")
    report.reach("closed memory", closed.keys["k",].nbytes / 1e6)
    report.reach("closed row", seconds * 1e6)
    few = keys[: scale.closed_keys // 10]
    texts = ClosedSet(SCHEMA)
    texts.add(Pattern((("s", ValueList(tuple(f"user {key}" for key in few))),)), 1)
    report.add(f"the same, {len(few):,} STRINGs", look_up(texts, batch, np.isin(numbers, few)) * 1e6, "µs")
    report.add("a key that is added alone", _one_by_one(few[:100_000]) * 1e6, "µs")
    _measure_pushes(root, report, few, batch)


def look_up(closed: ClosedSet, batch: pa.RecordBatch, expected: np.ndarray) -> float:
    """The seconds for a row of a batch, whose closed rows are the expected ones."""
    marks = closed.find(BatchCodes(SCHEMA, batch)).marks
    assert np.array_equal(marks != NO_MARK, expected)
    return _best(lambda: closed.find(BatchCodes(SCHEMA, batch))) / len(marks)


def _one_by_one(keys: np.ndarray) -> float:
    closed = ClosedSet(SCHEMA)
    began = time.perf_counter()
    for key in keys.tolist():
        closed.add(Pattern((("k", ValueList((key,))),)), 1)
    return (time.perf_counter() - began) / len(keys)


def _measure_pushes(root: Path, report: Report, keys: np.ndarray, batch: pa.RecordBatch) -> None:
    engine = ManualEngine(root / "closed_keys")
    for name in ("plain", "punctuated"):
        engine.create_stream(name, "k BIGINT, s STRING")
    engine.append("punctuated", [Punctuation(k=(keys * 7 + 1).tolist())])
    rows = batch.slice(0, 5_000)
    plain = _best(lambda: engine.append("plain", rows))
    punctuated = _best(lambda: engine.append("punctuated", rows))
    report.add("a push of 5,000 rows to a stream without punctuations", plain * 1e3, "ms")
    report.add(f"the same, {len(keys):,} keys are closed", punctuated * 1e3, "ms")
    engine.close()


def _best(call: Callable[[], object]) -> float:
    """The shortest of some times: other programs make it longer, never shorter."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)
