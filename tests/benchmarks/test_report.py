"""The report: goals met or missed, the page, the JSON file, the plots."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import goals, machine, peers_inprocess, peers_spark
from benchmarks.__main__ import LONG, PARTS
from benchmarks.cacq import CacqFindings
from benchmarks.cacq_plots import curves_by_method, over_time, plot
from benchmarks.goals import GOALS, verdict
from benchmarks.report import Report


@pytest.mark.parametrize("module", [goals, peers_inprocess, peers_spark])
def test_doctests(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_verdicts() -> None:
    assert verdict(1_000_000, ">= 1,000,000") == "met"
    assert verdict(750_000, ">= 1,000,000") == "NOT met, 25.0 % short"
    assert verdict(2.5, "<= 2") == "NOT met, 25.0 % over"


def test_every_goal_belongs_to_a_part() -> None:
    assert {goal.part for goal in GOALS} <= {*PARTS, *LONG}
    assert len({goal.key for goal in GOALS}) == len(GOALS)


def test_the_page_has_goals_first_and_measurements_by_part(tmp_path: Path) -> None:
    report = Report(tmp_path)
    report.begin("throughput")
    report.reach("materialised", 0.76)
    report.miss("auto", "nobody knows it")
    report.add("rows/s", 1234.5, "rows/s")
    report.note("a remark")
    report.write("some")
    page = (tmp_path / "some.md").read_text()
    assert "| >= 0.8 | >= 0.7 | 0.76 | NOT met, 5.0 % short; must be >= 0.7: met |" in page
    assert "not measured: nobody knows it" in page
    assert "| 4,096 selections lazy / no query | >= 0.95 | >= 0.9 |  | not measured: no part" in page
    assert "Spark's no-op sink" not in page, "a goal of a part that did not run"
    assert page.index("## Goals") < page.index("## throughput") < page.index("| rows/s | 1,234 rows/s |")
    assert "* a remark" in page
    assert not report.all_met()


def test_a_whole_run_shows_all_goals(tmp_path: Path) -> None:
    report = Report(tmp_path, whole=True)
    report.begin("invoke")
    assert [result.goal for result in report.goals] == list(GOALS)


def test_the_json_has_measurements_and_machine(tmp_path: Path) -> None:
    report = Report(tmp_path)
    report.begin("churn")
    report.reach("churn", 1.1)
    report.add("delay", 0.25, "s", "<= 1")
    report.write("churn")
    document = json.loads((tmp_path / "churn.json").read_text())
    goal = next(goal for goal in GOALS if goal.key == "churn")
    assert document["goals"] == [{**vars(goal), "value": 1.1, "met": "met"}]
    assert document["lines"] == [
        {"what": "delay", "value": 0.25, "unit": "s", "goal": "<= 1", "part": "churn", "met": "met"}
    ]
    assert {"cpu", "cores", "memory_gb", "kernel", "python", "java", "pyspark", "load_before", "load_after"} <= set(
        document["machine"]
    )
    assert report.all_met()


def test_conditions_of_the_run_are_on_the_page(tmp_path: Path) -> None:
    Report(tmp_path, remark="another program was running").write("some")
    assert "* remark: another program was running" in (tmp_path / "some.md").read_text()
    Report(tmp_path).write("some")
    assert "remark" not in (tmp_path / "some.md").read_text()


def test_a_failed_part_fails_the_run() -> None:
    report = Report()
    report.fail("no such thing")
    assert not report.all_met()


def test_memory_is_measured() -> None:
    assert 0 < machine.resident() < machine.available()


def test_cacq_is_plotted(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = Report(tmp_path)
    report.begin("cacq")
    rates = {1: {"shared": 10.0, "alone": 9.0}, 8: {"shared": 9.0, "alone": 1.0}}
    findings = CacqFindings(
        {"blocks": {"random": 3.0}}, {"tickets": [2.0, 3.0]}, {"apart": {"a": [0.5]}}, rates, rates, rates
    )
    plot(findings, report)
    report.write("cacq")
    page = (tmp_path / "cacq.md").read_text()
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == [
        "cacq-adaptation.svg",
        "cacq-queries.svg",
        "cacq-routing.svg",
        "cacq-sources.svg",
        "cacq-state.svg",
        "cacq-tickets-1.svg",
    ]
    assert all(f"({path.name})" in page for path in tmp_path.glob("*.svg"))


def test_curves_by_method_and_over_time() -> None:
    assert curves_by_method({1: {"a": 2.0}, 8: {"a": 3.0, "b": 4.0}}) == {"a": [(1, 2.0), (8, 3.0)], "b": [(8, 4.0)]}
    assert over_time({"a": [0.5, 0.25]}) == {"a": [(256, 0.5), (512, 0.25)]}
