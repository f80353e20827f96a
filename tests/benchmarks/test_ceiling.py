"""The search for the maximum number of queries, and its probes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import alerts, dense
from benchmarks.ceiling import NEVER, Delays, PushSchedule, walk
from benchmarks.pots import QueryPots
from benchmarks.report import Report
from benchmarks.scale import QUICK

TINY = replace(QUICK, seconds=0.3, warm_seconds=0.1)


def late_beyond(most: int) -> Callable[[int], float]:
    return lambda number: 1.0 if number <= most else 3.0


def test_a_walk_ends_at_the_maximum_if_everything_is_sustained() -> None:
    ceiling = walk(late_beyond(10**9), 2.0, first=10, most=500)
    assert (ceiling.sustained, ceiling.broken) == (500, None)
    assert list(ceiling.tried) == [10, 40, 160, 500]


def test_a_walk_increases_until_it_fails_and_then_bisects() -> None:
    ceiling = walk(late_beyond(100), 2.0, first=4, most=1_000, steps=3)
    assert list(ceiling.tried) == [4, 16, 64, 256, 128, 90, 107]
    assert (ceiling.sustained, ceiling.broken) == (90, 107)


def test_more_steps_narrow_the_result() -> None:
    ceiling = walk(late_beyond(100), 2.0, first=4, most=1_000, steps=20)
    assert (ceiling.sustained, ceiling.broken) == (100, 101)


def test_a_walk_decreases_if_the_first_number_fails() -> None:
    ceiling = walk(late_beyond(10), 2.0, first=1_000, most=4_000, steps=20)
    assert (ceiling.sustained, ceiling.broken) == (10, 11)


def test_zero_is_sustained_if_a_single_query_is_late() -> None:
    ceiling = walk(late_beyond(0), 2.0, first=8, most=100)
    assert (ceiling.sustained, ceiling.broken) == (0, 1)


def test_an_infinite_delay_is_not_sustained() -> None:
    ceiling = walk(lambda number: math.inf if number > 5 else 0.1, 2.0, first=5, most=6)
    assert (ceiling.sustained, ceiling.broken) == (5, 6)


def test_a_delay_equal_to_the_limit_is_sustained() -> None:
    assert walk(lambda _: 2.0, 2.0, first=1, most=1).sustained == 1


def test_freshness() -> None:
    assert Delays.of([]) is NEVER
    assert Delays.of([0.5]) == Delays(0.5, 0.5, 0.5)
    assert Delays.of([float(number) for number in range(1, 201)]) == Delays(100.5, 198.0, 200.0)


def test_due_times_are_equidistant_even_if_pushes_are_late() -> None:
    due: list[float] = []
    PushSchedule(rows=1, every=0.001, warm=0, pushes=5).play(lambda _, moment: due.append(moment))
    assert [late - early for early, late in pairwise(due)] == pytest.approx([0.001] * 4)


def test_rules_match_like_single_rules() -> None:
    rules = alerts.AlertRules.make(300, 20)
    rows = alerts.rows_of(3, 50, 20)
    pairs = list(zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True))
    rule_rows = rules.table.to_pylist()
    expected = [
        [number for number, rule in enumerate(rule_rows) if rule["key"] == key and value > rule["least"]]
        for key, value in pairs
    ]
    assert [sorted(rules.matching_rules(key, value).tolist()) for key, value in pairs] == expected
    assert rules.expected(rows) == sum(len(numbers) for numbers in expected) > 0


@pytest.mark.usefixtures("spark")
def test_alert_rules_are_sustained(tmp_path: Path) -> None:
    delays = alerts.measure_rules(tmp_path / "pot", 100, Report(tmp_path), TINY)
    assert delays is not NEVER


@pytest.mark.usefixtures("spark")
def test_dense_selections_are_sustained(tmp_path: Path) -> None:
    report = Report(tmp_path)
    pots = QueryPots(tmp_path / "queries", report)
    for mode in ("materialised", "lazy"):
        dense.measure_queries(tmp_path / "pot", mode, 8, report, pots, TINY)
    delays = [line.value for line in report.lines if line.what.endswith("p99")]
    assert len(delays) == 2
    assert all(math.isfinite(delay) for delay in delays)
