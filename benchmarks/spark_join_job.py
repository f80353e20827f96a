"""Spark's stream-stream join of the files of a folder; run as a program, so that it has a JVM of its own.

Reads a `JoinRequest` as a line of JSON from standard input, and prints `{"rows_per_second": …}`, until the input ends.
The argument is a JSON object of Spark's settings.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.functions import count as count_of
from pyspark.sql.functions import lit

from tureen.pipeline.session import spark_session

SCHEMA = "k BIGINT, x INT, v DOUBLE, ts TIMESTAMP"
STREAMS = ("a", "b")
FILES_PER_BATCH = 2
"""The number of files of each stream that a micro-batch reads."""


@dataclass(frozen=True)
class JoinRequest:
    """Which join of the files of a folder is measured.

    A kept join has all joined tuples, whatever its queries select, and so has Spark's. If it is `selective`, Spark
    applies the selections of one of our queries before the join, and keeps a hundredth of the tuples. If it is
    `counted`, Spark counts the joined tuples too, and their number is verified, which takes a little longer.
    """

    folder: str
    count: int = 1
    """The number of streaming queries."""
    selective: bool = False
    counted: bool = False


def selections(number: int, separator: str) -> str:
    """The selections of a query, with the separator between the names of streams and columns.

    >>> selections(5, ".")
    'a.x >= 5 AND a.x <= 7 AND b.x < 10'
    """
    low = number % 997
    return f"a{separator}x >= {low} AND a{separator}x <= {low + 2} AND b{separator}x < 10"


def measure(spark: SparkSession, request: JoinRequest) -> float:
    """Rows per second of all streams together."""
    folder = Path(request.folder)
    with TemporaryDirectory(dir=folder.parent) as checkpoints:
        rate = _run(spark, request, folder, Path(checkpoints))
    _unload_state(spark)
    return rate


def _run(spark: SparkSession, request: JoinRequest, folder: Path, checkpoints: Path) -> float:
    queries = []
    began = time.perf_counter()
    for number in range(request.count):
        sides = [
            spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", FILES_PER_BATCH)
            .parquet(str(folder / name))
            .selectExpr(f"k AS {name}_k", f"x AS {name}_x", f"v AS {name}_v", f"ts AS {name}_ts")
            for name in STREAMS
        ]
        joined = sides[0].join(sides[1], sides[0]["a_k"] == sides[1]["b_k"])
        if request.selective:
            joined = joined.where(selections(number, "_"))
        if request.counted:
            joined = joined.observe("joined", count_of(lit(1)).alias("rows"))
        queries.append(
            joined.writeStream.format("noop")
            .option("checkpointLocation", str(checkpoints / str(number)))
            .trigger(availableNow=True)
            .start()
        )
    for query in queries:
        query.awaitTermination()
    seconds = time.perf_counter() - began
    rows = sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
    for query in queries:
        read = sum(progress["numInputRows"] for progress in query.recentProgress)
        assert read == rows, f"a streaming query of Spark read {read:,} of {rows:,} rows"
        if request.counted:
            results = sum(progress["observedMetrics"]["joined"]["rows"] for progress in query.recentProgress)
            assert results == rows // len(STREAMS), f"Spark's join has {results:,} rows"
    return float(rows / seconds)


def _unload_state(spark: SparkSession) -> None:
    """Free the state of streaming queries that have ended, which Spark does once a minute."""
    java: Any = spark._jvm
    java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    java.System.gc()


def main() -> None:
    """Measure what is requested."""
    spark = spark_session("local[2]", json.loads(sys.argv[1]))
    for line in sys.stdin:
        rate = measure(spark, JoinRequest(**json.loads(line)))
        print(json.dumps({"rows_per_second": rate}), flush=True)


if __name__ == "__main__":
    main()
