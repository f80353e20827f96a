"""A Spark job that computes for each tuple which of many filters hold; run as a program.

Planning thousands of filters takes long and much memory, so the job has a separate JVM that can be killed. Reads
`{"folder": …, "count": …, "rows": …, "few": …}` from standard input; prints results as JSON objects, one per line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.workload import conditions, truth, tuples
from tureen.pipeline.session import spark_session

CHECKED = 20
MOST_RUNS = 8
STILL_QUICKER = 0.9
"""Java compiles hot code for minutes: the job is repeated until it is not a tenth faster than before."""
MANY = 512
"""With more filters than this, Spark is faster without whole-stage code generation."""


def run(spark: SparkSession, root: Path, count: int, rows: int, few: int) -> None:
    """Time the job for all rows, repeatedly until it does not get faster, and for a few rows."""
    table = tuples(rows, 999)
    wheres = conditions(count)
    array = ", ".join(f"IF({where}, {number}, NULL)" for number, where in enumerate(wheres))
    column = f"array_compact(array({array})) AS matches"
    check = root / f"check-{count}.parquet"
    pq.write_table(table.slice(0, CHECKED), check)
    for row_index, row in enumerate(spark.read.parquet(str(check)).selectExpr(column).collect()):
        expected = [number for number, where in enumerate(wheres) if truth(table.slice(row_index, 1), where)[0]]
        assert row.matches == expected, "Spark's answer differs from numpy's"
    _report(checked=count)

    def timed(size: int) -> float:
        path = root / f"job-{count}-{size}.parquet"
        pq.write_table(table.slice(0, size), path)
        frame = spark.read.parquet(str(path)).repartition(2).selectExpr("*", column)
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - began
        _report(rows=size, seconds=seconds)
        return seconds

    best, last = float("inf"), timed(rows)
    for _ in range(MOST_RUNS):
        if last > STILL_QUICKER * best:
            break
        best, last = min(best, last), timed(rows)
    for _ in range(2):
        timed(few)


def _report(**results: object) -> None:
    print(json.dumps(results), flush=True)


def main() -> None:
    """Read a request and run the job."""
    request = json.load(sys.stdin)
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 8g pyspark-shell"
    spark = spark_session("local[2]")
    if request["count"] > MANY:
        # In a single method they take Java's compiler minutes (quadratic); without whole-stage code they are split.
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
    run(spark, Path(request["folder"]), request["count"], request["rows"], request["few"])


if __name__ == "__main__":
    main()
