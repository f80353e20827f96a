"""Joins by several engines at a small size: the results of all plans are those of DuckDB."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import join_peers
from benchmarks.join_increments import Pace, increments, typical
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


def test_streams_are_divided_into_increments(tmp_path: Path) -> None:
    tables = TWO.tables(1_000)
    parts = list(increments(tables, 300))
    assert [{name: len(table) for name, table in part.items()} for part in parts] == [
        {"a": size, "b": size} for size in (300, 300, 300, 100)
    ]
    folder = TWO.write(tmp_path, tables, 300)
    for name, table in tables.items():
        files = sorted((folder / "parquet" / name).iterdir())
        assert [pq.read_table(file) for file in files] == [part[name] for part in parts]
        assert pa.concat_tables([part[name] for part in parts]) == table


def test_a_pace_is_the_median_of_rounds() -> None:
    pace = typical([Pace(1_000, 4.0, 1.0), Pace(1_000, 2.0, 3.0), Pace(1_000, 1.0, 2.0)])
    assert (pace.rate, pace.processor_cost) == (500, 2_000)
