"""Rows per second of Flink's stream-stream join, over the same keys as Tureen's derived join, as CSV files.

Two sizes are run in one process: the difference leaves out what Flink does once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from benchmarks.outside import PeerFailed, run_program
from benchmarks.peers_flink import JOB, install
from benchmarks.peers_spark import slope
from benchmarks.report import Report

SECONDS = 300.0
"""The timeout of the job."""


def rate_of_flink_join(root: Path, rows: int, report: Report) -> float:
    """Rows per second of both streams, each with that number of rows; every key occurs once in each."""
    python = install()
    sizes = (rows // 4, rows)
    folders = [_files(root / f"flink-join-{size}", size) for size in sizes]
    # -I: import only from Flink's environment.
    printed = run_program([str(python), "-I", str(JOB)], {"joins": folders}, SECONDS)
    joined = [line["joined"] for line in printed if "joined" in line]
    running = [line["running"] for line in printed if "running" in line]
    if joined and joined[0] != sizes[0]:
        raise AssertionError(f"Flink joined {joined[0]:,} of {sizes[0]:,} rows")
    if len(running) < len(sizes):
        raise PeerFailed(f"timed out after {SECONDS:.0f} s, running the job")
    (version,) = [line["version"] for line in printed if "version" in line]
    durations = f"ran {running[0]:.1f} s and {running[1]:.1f} s"
    report.note(f"Flink {version}, joins of two streams of {sizes[0]:,} and of {sizes[1]:,} rows: {durations}")
    return slope((2 * sizes[0], 2 * sizes[1]), (running[0], running[1]))


def _files(folder: Path, rows: int) -> str:
    """Both streams as CSV files without a header."""
    for seed, name in enumerate(("a", "b")):
        (folder / name).mkdir(parents=True)
        random = np.random.default_rng(seed)
        keys = random.permutation(rows)
        table = pa.table({"k": keys, "x": keys % 1000, "v": keys / 2})
        for half in (0, 1):
            part = table.slice(half * rows // 2, rows // 2)
            pcsv.write_csv(part, folder / name / f"{half}.csv", pcsv.WriteOptions(include_header=False))
    return str(folder)
