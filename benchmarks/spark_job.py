"""One Spark job that says for each tuple which of many filters hold; a program of its own.

A plan with thousands of filters takes long and much memory, so it gets a JVM of its own that can be stopped. Reads
`{"folder": …, "count": …, "sizes": […]}` from standard input; prints one JSON object a line as it goes.
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
MANY = 512
"""From so many filters on Spark does better without whole-stage code."""


def run(spark: SparkSession, root: Path, count: int, sizes: list[int]) -> list[float]:
    """How many seconds the job takes for each number of rows."""
    table = tuples(max(sizes), 999)
    wanted = conditions(count)
    array = ", ".join(f"IF({where}, {number}, NULL)" for number, where in enumerate(wanted))
    column = f"array_compact(array({array})) AS matches"
    few = root / f"few-{count}.parquet"
    pq.write_table(table.slice(0, CHECKED), few)
    for place, row in enumerate(spark.read.parquet(str(few)).selectExpr(column).collect()):
        held = [number for number, where in enumerate(wanted) if truth(table.slice(place, 1), where)[0]]
        assert row.matches == held, "Spark's own answer differs from numpy's"
    _say(checked=count)
    seconds = []
    for place, rows in enumerate(sizes):
        path = root / f"job-{count}-{place}.parquet"
        pq.write_table(table.slice(0, rows), path)
        frame = spark.read.parquet(str(path)).repartition(2).selectExpr("*", column)
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - began)
        _say(rows=rows, seconds=seconds[-1])
    return seconds


def _say(**found: object) -> None:
    print(json.dumps(found), flush=True)


def main() -> None:
    """Answer one question."""
    asked = json.load(sys.stdin)
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 8g pyspark-shell"
    spark = spark_session("local[2]")
    if asked["count"] > MANY:
        # In one method they take its compiler minutes, quadratically; without whole-stage code they are split.
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
    run(spark, Path(asked["folder"]), asked["count"], asked["sizes"])


if __name__ == "__main__":
    main()
