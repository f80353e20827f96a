"""The same selections by Spark alone: one job with all filters, and a streaming query for each."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.outside import GaveUp, converse
from benchmarks.workload import SCHEMA, conditions, truth, tuples


def one_job(root: Path, count: int, rows: int, few: int, seconds: float) -> tuple[float, float]:
    """Rows per second of one job that says for each tuple which of the filters hold: in its first run, and at its best.

    The first run is as a job comes, with its plan to be made and its code to be compiled. At its best, Java has
    compiled everything, and the plan, which takes seconds with thousands of filters, is not counted: the rate is that
    of what many rows take longer than a few. A job that stands for long comes near to it.
    """
    asked = {"folder": str(root), "count": count, "rows": rows, "few": few}
    said = converse([sys.executable, "-m", "benchmarks.spark_job"], asked, seconds)
    many, little = ([one["seconds"] for one in said if one.get("rows") == size] for size in (rows, few))
    if not little:
        done = f"{len(many)} runs done" if said else "planning the job"
        raise GaveUp(f"gave up after {seconds:.0f} s, {done}")
    return rows / many[0], slope((few, rows), (min(little), min(many)))


def slope(rows: tuple[int, int], seconds: tuple[float, float]) -> float:
    """Rows per second of what the larger size takes more; of all of it where noise hides the difference.

    >>> slope((100, 300), (1.0, 2.0)), slope((100, 300), (2.0, 2.0))
    (200.0, 150.0)
    """
    more = seconds[1] - seconds[0]
    return (rows[1] - rows[0]) / more if more > 0.1 * seconds[1] else rows[1] / seconds[1]


def many_streams(spark: SparkSession, root: Path, count: int, rows: int) -> float:
    """Rows per second when each of the queries is a Spark streaming query of its own."""
    folder = root / "stream"
    folder.mkdir()
    table = tuples(rows, 998)
    pq.write_table(table, folder / "one.parquet")
    wanted = conditions(count)
    queries = []
    began = time.perf_counter()
    for number, where in enumerate(wanted):
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
    assert read <= {rows, 0}, f"the streaming queries read {read} rows"
    for where in wanted[:4]:
        counted = spark.read.parquet(str(folder)).where(where).count()
        assert counted == truth(table, where).sum(), f"Spark's own answer differs from numpy's for {where}"
    return rows / seconds
