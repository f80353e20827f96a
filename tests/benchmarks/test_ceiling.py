"""The walk to the ceiling, and what is probed on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import alerts, dense
from benchmarks.ceiling import NEVER, Freshness, Pace, walk
from benchmarks.pots import QueryPots
from benchmarks.report import Report
from benchmarks.scale import QUICK

TINY = replace(QUICK, seconds=0.3, warm_seconds=0.1)


def late_beyond(most: int) -> Callable[[int], float]:
    return lambda number: 1.0 if number <= most else 3.0


def test_a_walk_ends_at_the_most_if_everything_holds() -> None:
    found = walk(late_beyond(10**9), 2.0, first=10, most=500)
    assert (found.held, found.broken) == (500, None)
    assert list(found.tried) == [10, 40, 160, 500]


def test_a_walk_goes_up_until_it_breaks_and_then_bisects() -> None:
    found = walk(late_beyond(100), 2.0, first=4, most=1_000, steps=3)
    assert list(found.tried) == [4, 16, 64, 256, 128, 90, 107]
    assert (found.held, found.broken) == (90, 107)


def test_more_steps_come_closer() -> None:
    found = walk(late_beyond(100), 2.0, first=4, most=1_000, steps=20)
    assert (found.held, found.broken) == (100, 101)


def test_a_walk_goes_down_if_the_first_one_breaks() -> None:
    found = walk(late_beyond(10), 2.0, first=1_000, most=4_000, steps=20)
    assert (found.held, found.broken) == (10, 11)


def test_nothing_is_held_where_even_one_is_late() -> None:
    found = walk(late_beyond(0), 2.0, first=8, most=100)
    assert (found.held, found.broken) == (0, 1)


def test_what_never_comes_is_not_held() -> None:
    found = walk(lambda number: math.inf if number > 5 else 0.1, 2.0, first=5, most=6)
    assert (found.held, found.broken) == (5, 6)


def test_the_limit_itself_is_held() -> None:
    assert walk(lambda _: 2.0, 2.0, first=1, most=1).held == 1


def test_freshness() -> None:
    assert Freshness.of([]) is NEVER
    assert Freshness.of([0.5]) == Freshness(0.5, 0.5, 0.5)
    assert Freshness.of([float(number) for number in range(1, 201)]) == Freshness(100.5, 198.0, 200.0)


def test_pushes_are_due_at_equal_distances_however_late_they_come() -> None:
    due: list[float] = []
    Pace(rows=1, every=0.001, warm=0, pushes=5).play(lambda _, moment: due.append(moment))
    assert [late - early for early, late in pairwise(due)] == pytest.approx([0.001] * 4)


def test_rules_match_as_if_each_were_asked() -> None:
    rules = alerts.Rules.make(300, 20)
    rows = alerts.rows_of(3, 50, 20)
    pairs = list(zip(rows.column("key").to_pylist(), rows.column("v").to_pylist(), strict=True))
    asked = rules.table.to_pylist()
    right = [
        [number for number, rule in enumerate(asked) if rule["key"] == key and value > rule["least"]]
        for key, value in pairs
    ]
    assert [sorted(rules.matched(key, value).tolist()) for key, value in pairs] == right
    assert rules.expected(rows) == sum(len(one) for one in right) > 0


@pytest.mark.usefixtures("spark")
def test_alert_rules_are_held(tmp_path: Path) -> None:
    fresh = alerts.hold(tmp_path / "pot", 100, Report(tmp_path), TINY)
    assert fresh is not NEVER


@pytest.mark.usefixtures("spark")
def test_dense_selections_are_held(tmp_path: Path) -> None:
    report = Report(tmp_path)
    pots = QueryPots(tmp_path / "queries", report)
    for way in ("materialised", "lazy"):
        dense.hold(tmp_path / "pot", way, 8, report, pots, TINY)
    late = [line.value for line in report.lines if line.what.endswith("p99")]
    assert len(late) == 2
    assert all(math.isfinite(one) for one in late)
