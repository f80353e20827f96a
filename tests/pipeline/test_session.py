"""The settings of Spark's session, and a session that others started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import tureen
from tureen.errors import EngineFailed, TureenError
from tureen.pipeline.session import spark_session

CODE = """
import sys, tureen
from pyspark.sql import SparkSession
settings = {"spark.sql.shuffle.partitions": 3, "spark.tureen.test": "a b", "spark.ui.enabled": False,
            "spark.driver.extraJavaOptions": "-Dtureen.test=yes"}
with tureen.open(sys.argv[1], master="local[1]", spark=settings) as soup:
    soup.start(wait=120)
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    print([session.conf.get(key) for key in list(settings)[:3]])
    print(session._jvm.System.getProperty("tureen.test"), session._jvm.System.getProperty("log4j2.configurationFile"))
"""


def test_spark_settings_reach_the_session(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "pot")], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[:1] == ["['3', 'a b', 'false']"], done.stderr
    assert lines[1].startswith("yes file:"), "its own options of Java stay as well"


def test_batches_for_python_are_limited_by_rows_not_by_bytes(spark: SparkSession) -> None:
    # 20 kB a row: with Spark's limit of 64 MiB, a batch has fewer rows.
    rows = spark.range(0, 5_000, numPartitions=1).selectExpr("repeat('x', 20000) AS text")
    sizes = rows.mapInArrow(_size_of_each, "size BIGINT").collect()
    assert [row.size for row in sizes] == [4_096, 904]


def _size_of_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch([pa.array([batch.num_rows])], names=["size"])


def test_spark_settings_that_a_running_session_lacks(spark: SparkSession) -> None:
    assert spark_session("local[2]", {"spark.ui.enabled": "false"}) is spark
    with pytest.raises(EngineFailed, match=r"without spark\.jars\.packages = x:y:1"):
        spark_session("local[2]", {"spark.jars.packages": "x:y:1"})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("spark.a=1", "must be a dict, got str"),
        ({"jars": "x"}, "must be named spark"),
        ({"spark.master": "local[1]"}, "must be given as master"),
        ({"spark.a": None}, "spark.a must be a text or a number, got NoneType"),
    ],
)
def test_invalid_spark_settings(tmp_path: Path, settings: Any, says: str) -> None:
    with pytest.raises(TureenError, match=says):
        tureen.open(tmp_path / "pot", spark=settings)


OTHERS = """
import sys
from pyspark.sql import SparkSession
import tureen
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with tureen.open(sys.argv[1]) as soup:
    soup.create_stream("s", "a INT")
    soup.create_stream("ticks", "value BIGINT", source={"format": "rate", "options": {"rowsPerSecond": 10}})
    query = soup.register("SELECT a FROM s")
    print(query.invoke(wait_for=soup.push("s", [{"a": 7}]), timeout=120).table.to_pylist())
    ticks = soup.register("SELECT value FROM ticks")
    while not len(answer := ticks.invoke()) and soup.status()["streams"]["ticks"]["error"] is None:
        soup.push("s", [{"a": 8}])
        soup.settle()
    print(len(answer) > 0, soup.status()["streams"]["ticks"]["error"])
"""


def test_an_existing_session_without_python_setting(tmp_path: Path) -> None:
    """Spark uses the first `python3` of the path, which cannot start here."""
    wrong = tmp_path / "bin" / "python3"
    wrong.parent.mkdir()
    wrong.write_text("#!/bin/sh\nexit 3\n")
    wrong.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {"PATH": f"{wrong.parent}:{os.environ['PATH']}", "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", OTHERS, str(tmp_path / "pot")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[{'a': 7}]", "True None"], done.stderr[-3000:]
