"""Rows per second of Flink's joins of streams, over the same tuples as Tureen's, as CSV files.

Two sizes are run in one process: the difference leaves out what Flink does once. Its result is compared with DuckDB's
before. The size of its state is that of its largest checkpoint, in a run of its own.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.join_workload import JoinWorkload
from benchmarks.outside import PeerFailed, run_program
from benchmarks.peers_flink import JOB, install
from benchmarks.peers_spark import slope
from benchmarks.report import Report

CHECKED_ROWS = 4_000
"""The rows of each stream whose joined rows are compared: every one of them is an update of the sums."""

SECONDS = 400.0
"""The timeout of the job."""


def measure_flink_join(root: Path, workload: JoinWorkload, rows: int, report: Report) -> tuple[float, float | None]:
    """Rows per second of all streams, each with that number of rows, and the bytes of its state, if it was seen."""
    python = install()
    sizes = (rows // 4, rows)
    few = workload.tables(CHECKED_ROWS)
    expected = workload.expected(few)
    checked = str(workload.write(root / "flink-checked", few) / "csv")
    folders = [str(workload.write(root / f"flink-{size}", workload.tables(size)) / "csv") for size in sizes]
    request = {
        "few": checked,
        "joins": folders,
        "streams": dict(workload.streams),
        "sql": workload.sql,
        "checked": workload.checked,
    }
    # -I: import only from Flink's environment.
    command = [str(python), "-I", str(JOB)]
    printed = run_program(command, {**request, "checkpoints": str(root / "checkpoints")}, SECONDS)
    sums = [tuple(map(float, line["sums"])) for line in printed if "sums" in line]
    running = [line["running"] for line in printed if "running" in line]
    if sums and sums[0] != expected:
        raise AssertionError(f"Flink's join has the sums {sums[0]}, and DuckDB's {expected}")
    if len(running) < len(sizes):
        raise PeerFailed(f"timed out after {SECONDS:.0f} s, running the job")
    (version,) = [line["version"] for line in printed if "version" in line]
    state = next((float(line["state"]) for line in printed if line.get("state")), None)
    durations = f"ran {running[0]:.1f} s and {running[1]:.1f} s"
    count = len(workload.streams)
    report.note(f"Flink {version}, joins of {count} streams of {sizes[0]:,} and of {sizes[1]:,} rows: {durations}")
    return slope((count * sizes[0], count * sizes[1]), (running[0], running[1])), state
