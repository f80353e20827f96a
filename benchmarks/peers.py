"""(b) The same work by Spark alone: one job with all filters, and one streaming query per standing query."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.report import Report
from benchmarks.workload import SCHEMA, conditions, truth, tuples

JOB_ROWS = 20_000
STREAM_ROWS = 100_000


def one_job(spark: SparkSession, root: Path, count: int) -> float:
    """Rows per second of one job that says for each tuple which of the filters hold."""
    table = tuples(JOB_ROWS, 999)
    path = root / f"job-{count}.parquet"
    pq.write_table(table, path)
    wanted = conditions(count)
    array = ", ".join(f"IF({where}, {number}, NULL)" for number, where in enumerate(wanted))
    few = root / f"few-{count}.parquet"
    pq.write_table(table.slice(0, 50), few)
    column = f"array_compact(array({array})) AS matches"
    for place, row in enumerate(spark.read.parquet(str(few)).selectExpr(column).collect()):
        held = [number for number, where in enumerate(wanted) if truth(table.slice(place, 1), where)[0]]
        assert row.matches == held, "Spark's own answer differs from numpy's"
    frame = spark.read.parquet(str(path)).repartition(2).selectExpr("*", column)
    best = np.inf
    for _ in range(2):
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        best = min(best, time.perf_counter() - began)
    return JOB_ROWS / best


def many_streams(spark: SparkSession, root: Path, count: int) -> float:
    """Rows per second when each of the queries is a Spark streaming query of its own."""
    folder = root / "stream"
    folder.mkdir()
    pq.write_table(tuples(STREAM_ROWS, 998), folder / "one.parquet")
    queries = []
    began = time.perf_counter()
    for number, where in enumerate(conditions(count)):
        frame = spark.readStream.schema(SCHEMA).parquet(str(folder)).where(where)
        queries.append(
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(root / "checkpoints" / str(number)))
            .trigger(availableNow=True)
            .start()
        )
    for query in queries:
        query.awaitTermination()
    seconds = time.perf_counter() - began
    read = {sum(one["numInputRows"] for one in query.recentProgress) for query in queries}
    # Spark reads nothing for a filter that it sees can never hold.
    assert read <= {STREAM_ROWS, 0}, f"the streaming queries read {read} rows"
    return STREAM_ROWS / seconds


def measure(spark: SparkSession, root: Path, report: Report, ours: dict[int, float]) -> None:
    """Compare with our rate at the same number of queries, or at more where ours was measured at more."""
    root.mkdir()
    job = one_job(spark, root, 1024)
    report.add("Spark, one job with 1,024 filters", job, "rows/s")
    report.add("ours with 4,096 queries / that", ours[4096] / job, "times", ">= 50")
    streams = many_streams(spark, root, 128)
    report.add("Spark, 128 streaming queries", streams, "rows/s")
    report.add("ours with 128 queries / that", ours[128] / streams, "times", ">= 50")
