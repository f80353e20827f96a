"""The same selections by Flink: a statement set with a filter and a sink for each query, over the same rows as files.

Flink wants other versions of our own packages, so it gets a virtual environment of its own, made at the first use, and
a process of its own.
"""

from __future__ import annotations

import subprocess
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv

from benchmarks.outside import GaveUp, converse, last_line
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
class Said:
    """What the job said before it ended or was stopped."""

    version: str = ""
    counts: tuple[int, ...] = ()
    planned: tuple[float, ...] = ()
    running: tuple[float, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Mapping[str, Any]]) -> Said:
        """Collect what it said, an object for each thing."""
        return cls(
            next((one["version"] for one in found if "version" in one), ""),
            next((tuple(one["counts"]) for one in found if "counts" in one), ()),
            tuple(one["planned"] for one in found if "planned" in one),
            tuple(one["running"] for one in found if "running" in one),
        )


def install(home: Path = HOME) -> Path:
    """The interpreter that has Flink; the environment is made if it is not there."""
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"    installing {PACKAGE} into {home.name}", flush=True)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", PACKAGE]
        try:
            subprocess.run(pip, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.CalledProcessError as error:
            raise GaveUp(f"pip could not install it: {last_line(error.stderr)}") from error
        except subprocess.TimeoutExpired as error:
            raise GaveUp(f"pip gave up after {INSTALL_SECONDS} s") from error
        (home / ".ready").touch()
    return python


def rate_of_flink(root: Path, count: int, sizes: tuple[int, int], seconds: float, report: Report) -> float:
    """Rows per second of one job with all filters, without its planning."""
    python = install()
    wanted = conditions(count)
    # Its rate falls faster than the number of queries grows; so that all take about as long:
    smaller, larger = (max(100, int(rows * min(1.0, 128 / count) ** 2)) for rows in sizes)
    folders = [_files(root / f"flink-{count}-{rows}", rows) for rows in (smaller, larger)]
    few, checked = _files(root / f"flink-{count}-few", 1_000), wanted[:CHECKED]
    asked = {"few": few, "checked": checked, "files": folders, "wanted": wanted}
    # Isolated, so that it finds its own packages alone.
    said = Said.of(converse([str(python), "-I", str(JOB)], asked, seconds))
    right = [int(truth(tuples(1_000, 999), where).sum()) for where in checked]
    if said.counts and list(said.counts) != right:
        raise AssertionError("Flink's own answers differ from numpy's")
    taken = f"planned in {_seconds(said.planned)}, ran {_seconds(said.running)}"
    report.note(f"Flink {said.version}, {count:,} queries: {taken}")
    if len(said.running) < 2:
        stage = "running the job" if said.planned else "planning the job"
        raise GaveUp(f"gave up after {seconds:.0f} s, {stage}")
    return slope((smaller, larger), (said.running[0], said.running[1]))


def _files(folder: Path, rows: int) -> str:
    """So many tuples as two CSV files without a header."""
    folder.mkdir(parents=True)
    table = tuples(rows, 999).select(list(COLUMNS))
    for half in (0, 1):
        part = table.slice(half * rows // 2, rows // 2)
        pcsv.write_csv(part, folder / f"{half}.csv", pcsv.WriteOptions(include_header=False))
    return str(folder)


def _seconds(taken: Sequence[float]) -> str:
    return " and ".join(f"{one:.1f} s" for one in taken) or "no time that is known"
