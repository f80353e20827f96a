"""The same selections by Spark alone: one job with all filters, and a streaming query for each."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.outside import PeerFailed, run_program
from benchmarks.workload import SCHEMA, conditions, truth, tuples


def single_job_rates(root: Path, count: int, rows: int, few: int, seconds: float) -> tuple[float, float]:
    """Rows per second of a job that computes for each tuple which filters hold: in its first run, and in its best.

    The first run includes planning and code generation. The best rate excludes planning, which takes seconds with
    thousands of filters, and is measured when Java has compiled everything: it is the difference between many rows and
    a few. A long-running job comes near to it.
    """
    request = {"folder": str(root), "count": count, "rows": rows, "few": few}
    results = run_program([sys.executable, "-m", "benchmarks.spark_job"], request, seconds)
    full_runs, few_runs = (
        [result["seconds"] for result in results if result.get("rows") == size] for size in (rows, few)
    )
    if not few_runs:
        done = f"{len(full_runs)} runs done" if results else "planning the job"
        raise PeerFailed(f"timed out after {seconds:.0f} s, {done}")
    return rows / full_runs[0], slope((few, rows), (min(few_runs), min(full_runs)))


def slope(rows: tuple[int, int], seconds: tuple[float, float]) -> float:
    """Rows per second by the difference of two sizes; by the larger one alone if noise hides the difference.

    >>> slope((100, 300), (1.0, 2.0)), slope((100, 300), (2.0, 2.0))
    (200.0, 150.0)
    """
    difference = seconds[1] - seconds[0]
    return (rows[1] - rows[0]) / difference if difference > 0.1 * seconds[1] else rows[1] / seconds[1]


def many_streams(spark: SparkSession, root: Path, count: int, rows: int) -> float:
    """Rows per second with a Spark streaming query for each query."""
    folder = root / "stream"
    folder.mkdir()
    table = tuples(rows, 998)
    pq.write_table(table, folder / "one.parquet")
    wheres = conditions(count)
    queries = []
    began = time.perf_counter()
    for number, where in enumerate(wheres):
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
    read = {sum(progress["numInputRows"] for progress in query.recentProgress) for query in queries}
    # Spark reads nothing for a filter that is never true.
    assert read <= {rows, 0}, f"the streaming queries read {read} rows"
    for where in wheres[:4]:
        counted = spark.read.parquet(str(folder)).where(where).count()
        assert counted == truth(table, where).sum(), f"Spark's answer differs from numpy's for {where}"
    return rows / seconds
