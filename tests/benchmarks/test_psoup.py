"""PSoup's experiments, small: what is timed is compared with numpy on the way, and wrong results are noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from benchmarks import psoup, psoup_arrival, psoup_response
from benchmarks.psoup_kept import Kept
from benchmarks.psoup_variants import KEPT, P_SHARED, P_UNSHARED, WRITTEN, Variant
from benchmarks.psoup_workload import Workload, intervals, uniform
from benchmarks.report import Report
from benchmarks.traffic import LANES, REPORT, STATIONS, trace, traffic
from tureen.results.answer import Answer, Bounds
from tureen.stems.run import times_of

ROWS = 4_200
"""A batch: enough to be indexed."""


def test_all_experiments_run_and_are_drawn(tmp_path: Path) -> None:
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
def test_every_variant_keeps_what_numpy_finds(tmp_path: Path, make: Callable[[], Workload], window: int) -> None:
    workload = make()
    clauses = workload.clauses()
    variants = [
        Variant(name, tmp_path / str(place), workload, clauses, window) for place, name in enumerate([*WRITTEN, *KEPT])
    ]
    for first in range(0, 3 * ROWS, ROWS):
        for variant in variants:
            variant.take(workload.table.slice(first, ROWS))
        psoup_arrival.verify(workload, window, variants, len(clauses), first, first + ROWS)


def test_cells_of_queries_alone_are_those_of_all_at_once(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(60))
    sizes = []
    for name in (P_SHARED, P_UNSHARED):
        variant = Variant(name, tmp_path / name, workload, workload.clauses(), 100)
        variant.take(workload.table)
        sizes.append(variant.bytes)
    # Of dense clauses of one range, the engine writes no more than that the index has their rows.
    assert 0.8 * sizes[1] < sizes[0] <= sizes[1]


def test_wrong_results_are_noticed(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(4))
    variants = [
        Variant(name, tmp_path / str(place), workload, workload.clauses(), 100) for place, name in enumerate(WRITTEN)
    ]
    variants.append(Variant(KEPT[0], tmp_path / "kept", workload, workload.clauses(), 101))
    for variant in variants:
        variant.take(workload.table)
    psoup_arrival.verify(workload, 101, variants, 4, 0, ROWS)
    with pytest.raises(AssertionError, match="keeps wrong results"):
        psoup_arrival.verify(workload, 100, variants, 4, 0, ROWS)


def test_wrong_answers_are_noticed() -> None:
    workload = uniform("u", ROWS, intervals(4))

    def one_too_few(size: int, query: int, now: int) -> Answer:
        assert now == workload.times[-1]
        true = workload.truth(workload.conditions[query], 0, ROWS)
        held = true[true >= workload.begin(size, ROWS)]
        return Answer(workload.table.take(pa.array(held[1:])), Bounds(None, None), "", complete=True)

    with pytest.raises(AssertionError, match="wrong for"):
        psoup_response.verify(workload, [ROWS], {"short": one_too_few}, ROWS)


def test_traffic_has_rush_hours_and_reports() -> None:
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


def test_kept_results_are_counted(tmp_path: Path) -> None:
    workload = uniform("u", ROWS, intervals(4))
    variant = Variant(KEPT[0], tmp_path / "kept", workload, workload.clauses(), 50)
    variant.take(workload.table)
    kept = variant.kept
    assert isinstance(kept, Kept)
    assert kept.results == sum(len(kept.ids(query)) for query in range(4)) > 0
