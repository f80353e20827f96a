"""The same selections by Spark alone: one job with all filters, and a streaming query for each."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.workload import SCHEMA, conditions, truth, tuples

CHECKED = 20


def one_job(spark: SparkSession, root: Path, count: int, sizes: tuple[int, int]) -> float:
    """Rows per second of one job that says for each tuple which of the filters hold.

    It is run over some rows and over more, and the rate is that of the difference: a plan with thousands of filters
    takes seconds to make, which a job that stands would do once.
    """
    table = tuples(max(sizes), 999)
    wanted = conditions(count)
    array = ", ".join(f"IF({where}, {number}, NULL)" for number, where in enumerate(wanted))
    column = f"array_compact(array({array})) AS matches"
    few = root / f"few-{count}.parquet"
    pq.write_table(table.slice(0, CHECKED), few)
    for place, row in enumerate(spark.read.parquet(str(few)).selectExpr(column).collect()):
        held = [number for number, where in enumerate(wanted) if truth(table.slice(place, 1), where)[0]]
        assert row.matches == held, "Spark's own answer differs from numpy's"
    seconds = []
    for rows in sizes:
        path = root / f"job-{count}-{rows}.parquet"
        pq.write_table(table.slice(0, rows), path)
        frame = spark.read.parquet(str(path)).repartition(2).selectExpr("*", column)
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - began)
    return slope(sizes, (seconds[0], seconds[1]))


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
