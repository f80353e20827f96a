"""The same selections by Flink: a statement set with a filter and a sink for each query, over the same rows as files.

Flink requires other versions of Tureen's dependencies, so it runs in a separate process with its own virtual
environment, which is created at the first use.
"""

from __future__ import annotations

import subprocess
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv

from benchmarks.outside import PeerFailed, last_line, run_program
from benchmarks.peers_spark import slope
from benchmarks.report import Report
from benchmarks.workload import COLUMNS, conditions, truth, tuples

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".venv-flink"
PACKAGE = "apache-flink>=2.3,<2.4"
JOB = Path(__file__).with_name("flink_job.py")
CHECKED = 64
INSTALL_SECONDS = 900


@dataclass(frozen=True)
class JobOutput:
    """What the job printed before it ended or was killed."""

    version: str = ""
    counts: tuple[int, ...] = ()
    planned: tuple[float, ...] = ()
    running: tuple[float, ...] = ()

    @classmethod
    def of(cls, objects: Sequence[Mapping[str, Any]]) -> JobOutput:
        """Collect the JSON objects that the job printed."""
        return cls(
            next((line["version"] for line in objects if "version" in line), ""),
            next((tuple(line["counts"]) for line in objects if "counts" in line), ()),
            tuple(line["planned"] for line in objects if "planned" in line),
            tuple(line["running"] for line in objects if "running" in line),
        )


def install(home: Path = HOME) -> Path:
    """The interpreter of the environment with Flink, which is created if it is missing."""
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"    installing {PACKAGE} into {home.name}", flush=True)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", PACKAGE]
        try:
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.CalledProcessError as error:
            raise PeerFailed(f"pip could not install it: {last_line(error.stderr)}") from error
        except subprocess.TimeoutExpired as error:
            raise PeerFailed(f"pip timed out after {INSTALL_SECONDS} s") from error
        (home / ".ready").touch()
    return python


def rate_of_flink(root: Path, count: int, sizes: tuple[int, int], seconds: float, report: Report) -> float:
    """Rows per second of a job with all filters, without its planning."""
    python = install()
    wheres = conditions(count)
    # Flink's rate falls faster than the number of queries grows; with fewer rows, all sizes take about as long.
    smaller, larger = (max(100, int(rows * min(1.0, 128 / count) ** 2)) for rows in sizes)
    folders = [_files(root / f"flink-{count}-{rows}", rows) for rows in (smaller, larger)]
    few, checked = _files(root / f"flink-{count}-few", 1_000), wheres[:CHECKED]
    request = {"few": few, "checked": checked, "files": folders, "conditions": wheres}
    # -I: import only from Flink's environment.
    output = JobOutput.of(run_program([str(python), "-I", str(JOB)], request, seconds))
    expected = [int(truth(tuples(1_000, 999), where).sum()) for where in checked]
    if output.counts and list(output.counts) != expected:
        raise AssertionError("Flink's answers differ from numpy's")
    durations = f"planned in {_seconds(output.planned)}, ran {_seconds(output.running)}"
    report.note(f"Flink {output.version}, {count:,} queries: {durations}")
    if len(output.running) < 2:
        stage = "running the job" if output.planned else "planning the job"
        raise PeerFailed(f"timed out after {seconds:.0f} s, {stage}")
    return slope((smaller, larger), (output.running[0], output.running[1]))


def _files(folder: Path, rows: int) -> str:
    """Tuples as two CSV files without a header."""
    folder.mkdir(parents=True)
    table = tuples(rows, 999).select(list(COLUMNS))
    for half in (0, 1):
        part = table.slice(half * rows // 2, rows // 2)
        pcsv.write_csv(part, folder / f"{half}.csv", pcsv.WriteOptions(include_header=False))
    return str(folder)


def _seconds(durations: Sequence[float]) -> str:
    return " and ".join(f"{duration:.1f} s" for duration in durations) or "unknown time"
