"""The soak: its footprint, and which metrics count as flat."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from benchmarks.footprint import Footprint, measure_footprint
from benchmarks.report import Report
from benchmarks.soak import METRICS, Sample, Soak, SoakLog, report_on, write_table

FOOTPRINT = Footprint(500_000_000, 200_000_000, 20, 0, 1_000_000_000, 60, 30_000_000, 2_000_000, 4_000_000)


def soak_log(samples: list[Footprint]) -> SoakLog:
    return SoakLog([Sample(number, footprint, [0.001], [0.3]) for number, footprint in enumerate(samples)], rows=1_000)


def test_footprint_counts_mapped_and_deleted_files(tmp_path: Path) -> None:
    pot = tmp_path / "pot"
    (pot / "inbox").mkdir(parents=True)
    maps = []
    for name in ("kept", "deleted", "inbox/segment"):
        (pot / name).write_bytes(bytes(8192))
        if name != "inbox/segment":
            maps.append(pa.memory_map(str(pot / name)))
    (pot / "deleted").unlink()
    footprint = measure_footprint(os.getpid(), pot)
    assert (footprint.run_maps, footprint.deleted_maps) == (2, 1)
    assert (footprint.files, footprint.disk, footprint.inbox) == (2, 16384, 8192)
    assert footprint.anonymous > 1_000_000
    assert footprint.mapped > 1_000_000
    assert len(maps) == 2


def test_growing_metrics_miss_their_goal(tmp_path: Path) -> None:
    flat, growing = Report(tmp_path), Report(tmp_path)
    report_on(flat, soak_log([FOOTPRINT] * 50), Soak())
    assert flat.all_met()
    report_on(growing, soak_log([replace(FOOTPRINT, files=60 + number) for number in range(50)]), Soak())
    missed = [line.what for line in growing.lines if line.met.startswith("NOT met")]
    assert missed == ["files in the pot, last fifth / second"]


def test_failed_requests_are_reported(tmp_path: Path) -> None:
    report, log = Report(tmp_path), soak_log([FOOTPRINT] * 10)
    log.failures["invoke: 500"] = 2
    report_on(report, log, Soak())
    assert not report.all_met()
    assert any("invoke: 500" in note for _, note in report.notes)


def test_the_csv_has_a_line_per_sample(tmp_path: Path) -> None:
    write_table(tmp_path / "soak.csv", soak_log([FOOTPRINT] * 3).samples)
    lines = (tmp_path / "soak.csv").read_text().splitlines()
    assert len(lines) == 4
    assert lines[0].split(",")[0] == "minutes"
    assert all(metric.name.split(",")[0] in lines[0] for metric in METRICS)
