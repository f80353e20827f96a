"""Joins through Spark at a small size: wrong answers and missing joined tuples are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks import join_throughput, spark_join_job
from benchmarks.outside import PeerFailed
from benchmarks.spark_join_job import JoinRequest

FILES, ROWS = 2, 2_048


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with the files of both streams."""
    join_throughput.write_files(tmp_path / "files", FILES, ROWS)
    return tmp_path


@pytest.mark.parametrize("case", ["no query", "1 join, kept"])
def test_every_case_has_a_rate(spark: SparkSession, root: Path, case: str) -> None:
    assert join_throughput._once(spark, root, case, FILES * ROWS) > 0


def test_missing_joined_tuples_are_noticed(spark: SparkSession, root: Path) -> None:
    with pytest.raises(AssertionError, match="'joined_tuples': 4096"):
        join_throughput._once(spark, root, "1 join, kept", FILES * ROWS + 1)


def test_several_joins_of_spark_with_selections(spark: SparkSession, root: Path) -> None:
    assert spark_join_job.measure(spark, JoinRequest(str(root / "files"), 2, selective=True)) > 0


def test_the_joined_tuples_of_spark_are_counted(spark: SparkSession, root: Path) -> None:
    assert spark_join_job.measure(spark, JoinRequest(str(root / "files"), counted=True)) > 0
    join_throughput.write_files(root / "other", FILES, ROWS // 2)
    (root / "files" / "a" / "000.parquet").write_bytes((root / "other" / "a" / "000.parquet").read_bytes())
    with pytest.raises(AssertionError, match="Spark's join has"):
        spark_join_job.measure(spark, JoinRequest(str(root / "files"), counted=True))


def test_a_process_measures_joins_until_it_fails(root: Path) -> None:
    with join_throughput.SparkJoinProcess() as process:
        assert process.rate(JoinRequest(str(root / "files"))) > 0
        with pytest.raises(PeerFailed, match="ended with exit code 1"):
            process.rate(JoinRequest(str(root / "missing")))
