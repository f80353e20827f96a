"""Joins by several engines at a small size: the results of all plans are those of DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import join_peers
from benchmarks.join_workload import FOUR, TWO


@pytest.mark.parametrize("plan", join_peers.PLANS)
def test_every_plan_has_the_result_of_duckdb(tmp_path: Path, plan: str) -> None:
    tables = FOUR.tables(300)
    rate, tuples, size = join_peers._followed(tmp_path, FOUR, tables, join_peers.PLANS[plan], FOUR.expected(tables))
    assert rate > 0
    assert (tuples > 0, size > 0) == ((False, False) if plan == "eddy" else (True, True))


def test_wrong_results_are_noticed(tmp_path: Path) -> None:
    tables = TWO.tables(50)
    count, *sums = TWO.expected(tables)
    assert count == 50
    with pytest.raises(AssertionError, match="has the sums"):
        join_peers._followed(tmp_path, TWO, tables, join_peers.PLANS["eddy"], (count, *(each + 1 for each in sums)))


def test_a_tenth_of_the_chain_has_results(tmp_path: Path) -> None:
    tables = FOUR.tables(1_000)
    assert 50 < FOUR.expected(tables)[0] < 150
    folder = FOUR.write(tmp_path, tables)
    assert sorted(path.name for path in (folder / "csv" / "d").iterdir()) == ["000.csv", "001.csv"]
