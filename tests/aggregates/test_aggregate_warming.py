"""After `warm_up` no loop of the aggregates is compiled."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from tureen.aggregates import aggregate_kernels as kernels
from tureen.aggregates.aggregate_warming import warm_up
from tureen.testing.manual_engine import ManualEngine

loops = {loop for loop in vars(kernels).values() if isinstance(loop, Dispatcher)}
assert len(loops) > 8
warm_up()
warm = {loop: list(loop.signatures) for loop in loops}
engine = ManualEngine(Path(tempfile.mkdtemp()))
engine.create_stream("s", "k STRING, i BIGINT, n DECIMAL(10,2), d DOUBLE, ts TIMESTAMP", time="ts")
base = datetime(2026, 1, 1, tzinfo=UTC)
rows = [{"k": "ab"[i % 2], "i": i, "n": i, "d": i / 3, "ts": base + timedelta(seconds=i)} for i in range(3000)]
engine.push("s", rows[:1500])
engine.seal(everything=True)
engine.push("s", rows[1500:])
for sql in (
    "SELECT count(*), sum(i), avg(n), min(d), max(k), stddev(d), count(DISTINCT i) FROM s",
    "SELECT k, sum(i) FROM s WHERE i % 3 = 0 GROUP BY k",
    "SELECT window_start, k, avg(d) FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY k EMIT PARTIAL",
    "SELECT window_start, k, avg(d) FROM s [ROWS 50 SLIDE 20] WHERE i > 10 GROUP BY k",
):
    assert len(engine.invoke(engine.register(sql)))
new = {loop.__name__: loop.signatures for loop in loops if list(loop.signatures) != warm[loop]}
assert not new, new
"""


def test_nothing_is_compiled_after_warm_up() -> None:
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=250, check=False)
    assert process.returncode == 0, process.stderr
