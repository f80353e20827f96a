"""One Spark job that says for each tuple which of many filters hold; a program of its own.

A plan with thousands of filters takes long and much memory, so it gets a JVM of its own that can be stopped. Reads
`{"folder": …, "count": …, "rows": …, "few": …}` from standard input; prints one JSON object a line as it goes.
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
"""Java compiles what it runs often, for minutes: the job is run until it is not a tenth quicker than before."""
MANY = 512
"""From so many filters on Spark does better without whole-stage code."""


def run(spark: SparkSession, root: Path, count: int, rows: int, few: int) -> None:
    """Say how many seconds the job takes for so many rows, again and again until it is not quicker, and for a few."""
    table = tuples(rows, 999)
    wanted = conditions(count)
    array = ", ".join(f"IF({where}, {number}, NULL)" for number, where in enumerate(wanted))
    column = f"array_compact(array({array})) AS matches"
    check = root / f"check-{count}.parquet"
    pq.write_table(table.slice(0, CHECKED), check)
    for place, row in enumerate(spark.read.parquet(str(check)).selectExpr(column).collect()):
        held = [number for number, where in enumerate(wanted) if truth(table.slice(place, 1), where)[0]]
        assert row.matches == held, "Spark's own answer differs from numpy's"
    _say(checked=count)

    def timed(some: int) -> float:
        path = root / f"job-{count}-{some}.parquet"
        pq.write_table(table.slice(0, some), path)
        frame = spark.read.parquet(str(path)).repartition(2).selectExpr("*", column)
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - began
        _say(rows=some, seconds=seconds)
        return seconds

    best, last = float("inf"), timed(rows)
    for _ in range(MOST_RUNS):
        if last > STILL_QUICKER * best:
            break
        best, last = min(best, last), timed(rows)
    for _ in range(2):
        timed(few)


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
    run(spark, Path(asked["folder"]), asked["count"], asked["rows"], asked["few"])


if __name__ == "__main__":
    main()
