"""Compiling the loops of joins: otherwise each process of the tests that needs them first would compile them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from benchmarks import jit
from tureen.pipeline import arrival, upkeep
from tureen.position import Position
from tureen.results.joins import join_inputs
from tureen.testing.manual_engine import ManualEngine

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "n BIGINT, k INT, s STRING, d DECIMAL(10,2), ts TIMESTAMP"
CONDITIONS = ("a.k = b.k", "a.s = b.s AND a.n <> b.n", "a.d = b.d AND a.k = b.k", "a.k = b.k AND a.n > 3")


def warm_up() -> None:
    """Keep, answer and follow joins by keys of each kind, and run plans with feedback."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(arrival, "KEYED_ROWS", 1)
        patch.setattr(upkeep, "FAN", 2)
        _join(Path(folder, "scanned"))
        # Every equality with an input is looked up in a key index.
        patch.setattr(join_inputs, "PROBE_SHARE", 0)
        _join(Path(folder, "probed"))
    for plan in ("bushy", "left-deep"):
        workload = jit.Workload(plan, 4, 1, 0.5, 6)
        jit.cost_of(jit.plan_of(workload, is_scanned=False, has_feedback=True), jit.arrivals(workload))


def _join(root: Path) -> None:
    engine = ManualEngine(root)
    for name in "ab":
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    sqls = [f"SELECT a.n, b.n AS m, b.s FROM a, b WHERE {condition}" for condition in CONDITIONS]
    handles = [engine.register(sql, materialize=eager) for sql in sqls for eager in (True, False)]
    followers = {handle: engine.invoker.follow(handle) for handle in handles}
    start = Position.parse(engine.invoker.new_rows(handles[0], None).position())
    for first in range(0, 36, 9):
        for name in "ab":
            engine.push(name, [_row(n) for n in range(first, first + 9)])
        engine.keep_joins()
        engine.index_keys()
        for handle, follower in followers.items():
            engine.invoke(handle)
            engine.invoker.new_rows(handle, start, follower)
    engine.seal(everything=True)
    for handle in handles:
        engine.invoke(handle)
    engine.close()


def _row(n: int) -> dict[str, Any]:
    return {"n": n, "k": n % 3, "s": str(n % 2), "d": Decimal(n % 4), "ts": BEGIN + timedelta(seconds=n)}
