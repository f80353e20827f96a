"""PSoup's experiments at small sizes: results are compared with numpy, and wrong results are detected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from benchmarks import psoup, psoup_arrival, psoup_response
from benchmarks.psoup_variants import IN_MEMORY, P_SHARED, P_UNSHARED, WRITTEN, Variant
from benchmarks.psoup_window_results import WindowResults
from benchmarks.psoup_workload import Workload, intervals, uniform
from benchmarks.report import Report
from benchmarks.traffic import LANES, REPORT, STATIONS, trace, traffic
from tureen.results.answer import Answer, Bounds
from tureen.stems.run import times_of

ROWS = 4_200
"""A batch: enough to be indexed."""


def test_all_experiments_run_and_are_plotted(tmp_path: Path) -> None:
    report = Report()
    findings = psoup.measure(tmp_path / "pots", report, quick=True)
    assert set(findings.windows) == {psoup.EQUALITIES, psoup.INTERVALS, psoup.TRAFFIC}
    assert all(set(curves) == set(psoup_response.NAMES) for curves in findings.windows.values())
    assert set(findings.predicates) == set(psoup.TABLE_2)
    assert all(set(curves) == set(psoup_arrival.NAMES) for curves in findings.arrivals.values())
    assert all(line.value > 0 for line in report.lines)
    pytest.importorskip("matplotlib")
    psoup.plot(findings, tmp_path)
    assert len(list(tmp_path.glob("psoup-*.svg"))) == 7


@pytest.mark.parametrize("window", [1, 700, ROWS + 900])
@pytest.mark.parametrize("make", [lambda: uniform("u", 3 * ROWS, intervals(20)), lambda: traffic("t", 3 * ROWS, 20)])
def test_every_variant_agrees_with_numpy(tmp_path: Path, make: Callable[[], Workload], window: int) -> None:
    workload = make()
    clauses = workload.clauses()
    variants = [
        Variant(name, tmp_path / str(index), workload, clauses, window)
        for index, name in enumerate([*WRITTEN, *IN_MEMORY])
    ]
    for first in range(0, 3 * ROWS, ROWS):
        for variant in variants:
            variant.take(workload.table.slice(first, ROWS))
        psoup_arrival.verify(workload, window, variants, len(clauses), first, first + ROWS)


def test_unshared_cells_are_as_large_as_shared_cells(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(60))
    sizes = []
    for name in (P_SHARED, P_UNSHARED):
        variant = Variant(name, tmp_path / name, workload, workload.clauses(), 100)
        variant.take(workload.table)
        sizes.append(variant.bytes)
    # For dense clauses of a single range, the engine stores only a reference to the index.
    assert 0.8 * sizes[1] < sizes[0] <= sizes[1]


def test_wrong_window_results_are_detected(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(4))
    variants = [
        Variant(name, tmp_path / str(index), workload, workload.clauses(), 100) for index, name in enumerate(WRITTEN)
    ]
    variants.append(Variant(IN_MEMORY[0], tmp_path / "kept", workload, workload.clauses(), 101))
    for variant in variants:
        variant.take(workload.table)
    psoup_arrival.verify(workload, 101, variants, 4, 0, ROWS)
    with pytest.raises(AssertionError, match="keeps wrong results"):
        psoup_arrival.verify(workload, 100, variants, 4, 0, ROWS)


def test_wrong_answers_are_detected() -> None:
    workload = uniform("u", ROWS, intervals(4))

    def missing_row(size: int, query: int, now: int) -> Answer:
        assert now == workload.times[-1]
        matches = workload.truth(workload.conditions[query], 0, ROWS)
        in_window = matches[matches >= workload.begin(size, ROWS)]
        return Answer(workload.table.take(pa.array(in_window[1:])), Bounds(None, None), "", complete=True)

    with pytest.raises(AssertionError, match="wrong for"):
        psoup_response.verify(workload, [ROWS], {"short": missing_row}, ROWS)


def test_traffic_has_rush_hours() -> None:
    rows = 200_000
    table = trace(rows)
    times = times_of(table.column("sensordatetime"))
    assert len(table) == rows
    assert set(np.unique(np.diff(times))) <= {0, REPORT}
    for name, most in (("lane", LANES), ("stationid", STATIONS)):
        counts = np.bincount(table.column(name).to_numpy())[1:]
        assert len(counts) == most
        assert counts.max() < 1.05 * counts.min()
    hour = times % (24 * 3_600_000_000) // 3_600_000_000
    speed: npt.NDArray[np.float64] = table.column("speed").to_numpy()
    assert speed.min() >= 0
    assert speed.max() <= 100
    assert speed[hour == 8].mean() < 0.9 * speed[hour == 3].mean()
    volume = table.column("volume").to_numpy()
    assert volume[hour == 8].mean() > 4 * volume[hour == 3].mean()


def test_window_results_are_counted(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(4))
    variant = Variant(IN_MEMORY[0], tmp_path / "kept", workload, workload.clauses(), 50)
    variant.take(workload.table)
    results = variant.window_results
    assert isinstance(results, WindowResults)
    assert results.count == sum(len(results.ids(query)) for query in range(4)) > 0
