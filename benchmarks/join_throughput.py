"""Rows per second of two streams through Spark, with join queries and without; beside it Spark's stream-stream join.

Every key occurs once in each stream, so that each tuple has one partner. Rows per second are those of both streams
together, from the start of both streaming queries until all rows are in runs and, where results are kept, joined.
Spark has as many partitions as cores and its state in memory, and drops its results, which are counted once. The state
of a streaming query that has ended is unloaded, so that no round pays for the garbage collections of another.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.functions import count as count_of
from pyspark.sql.functions import lit

import tureen
from benchmarks.report import Report
from benchmarks.scale import Scale

SCHEMA = "k BIGINT, x INT, v DOUBLE, ts TIMESTAMP"
START = 1_700_000_000_000_000
STREAMS = ("a", "b")
CASES: dict[str, tuple[int, bool | str]] = {
    "no query": (0, False),
    "1,000 joins, auto": (1_000, "auto"),
    "1 join, kept": (1, True),
    "1,000 joins, kept": (1_000, True),
}
"""The number of join queries of each case, and how they are registered."""

SPARK_JOIN = "Spark's stream-stream join"

FEW_FILES = 2
"""The number of files of each stream for many of Spark's streaming queries: each of them reads and joins all rows.

They are smaller too, because each streaming query has all of their rows in memory."""


def measure(spark: SparkSession, root: Path, report: Report, scale: Scale) -> None:
    """Measure each case and Spark's own join in several rounds, by turns and after the same rounds of warm-up.

    In the rounds of warm-up, the JVM compiles what both sides run.
    """
    files, rows = max(scale.files // 2, 2), scale.rows_per_file // 2
    write_files(root / "files", files, rows)
    cases: dict[str, Callable[[], float]] = {case: partial(_once, spark, root, case, files * rows) for case in CASES}
    cases[SPARK_JOIN] = partial(spark_join, spark, root / "files", 1)
    rates: dict[str, list[float]] = {case: [] for case in cases}
    spark_join(spark, root / "files", 1, counted=True)
    warm_ups = scale.rounds + 1
    for number in range(warm_ups + scale.rounds):
        for case, run in cases.items():
            rate = run()
            print(f"    {case}: {rate:,.0f} rows/s", flush=True)
            if number >= warm_ups:
                rates[case].append(rate)
    typical = {case: statistics.median(of_case) for case, of_case in rates.items()}
    for case in CASES:
        report.add(f"rows/s of two streams, {case}", typical[case], "rows/s")
    none, kept = typical["no query"], typical["1 join, kept"]
    report.reach("joins auto", typical["1,000 joins, auto"] / none)
    report.reach("join kept", kept / none)
    report.reach("joins kept", typical["1,000 joins, kept"] / kept)
    write_files(root / "few", FEW_FILES, rows // 4)
    many = scale.spark_joins
    comparisons = (
        (1, "spark join", "files", kept, typical[SPARK_JOIN]),
        (many, "spark joins", "few", typical["1,000 joins, kept"], spark_join(spark, root / "few", many)),
    )
    for count, goal, folder, ours, theirs in comparisons:
        report.add(f"rows/s of Spark's stream-stream join, {count} streaming queries", theirs, "rows/s")
        report.reach(goal, ours / theirs)
        selective = spark_join(spark, root / folder, count, selective=True)
        report.add(f"the same with the selections of the queries, {count} streaming queries", selective, "rows/s")


def write_files(folder: Path, files: int, rows: int) -> None:
    """Write the rows of both streams, in which every key occurs once."""
    for seed, name in enumerate(STREAMS):
        random = np.random.default_rng(seed)
        keys = random.permutation(files * rows)
        (folder / name).mkdir(parents=True)
        for number in range(files):
            part = slice(number * rows, (number + 1) * rows)
            times = START + np.arange(part.start, part.stop) * 1000
            table = pa.table(
                {
                    "k": keys[part],
                    "x": random.integers(0, 1000, rows).astype(np.int32),
                    "v": random.random(rows),
                    "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                }
            )
            pq.write_table(table, folder / name / f"{number:03}.parquet", compression="none")


def _once(spark: SparkSession, root: Path, case: str, rows: int) -> float:
    count, materialize = CASES[case]
    pot = root / "pot"
    shutil.rmtree(pot, ignore_errors=True)
    with tureen.open(pot, mode="write") as soup:
        for name in STREAMS:
            soup.create_stream(name, SCHEMA, time="ts", clock="stream")
        queries = [soup.register(_join(number), materialize=materialize) for number in range(count)]
        soup.start(wait=120)
        # With a row in a run, the pot's Spark workers have started. Otherwise, they would start while rows are counted,
        # unless registering queries took as long.
        soup.create_stream("first", "a INT")
        soup.push("first", [{"a": 1}])
        soup.settle()
        began = time.perf_counter()
        running = [_send(spark, root, pot, name) for name in STREAMS]
        for query in running:
            query.awaitTermination()
        soup.settle()
        seconds = time.perf_counter() - began
        for query in queries[:: max(1, len(queries) // 3)]:
            _verify(root / "files", query, kept=materialize is True, rows=rows)
    return len(STREAMS) * rows / seconds


def _join(number: int) -> str:
    low = number % 997
    return f"SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE a.x >= {low} AND a.x <= {low + 2} AND b.x < 10"


def _send(spark: SparkSession, root: Path, pot: Path, name: str) -> Any:
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(root / "files" / name))
    return (
        frame.writeStream.format("tureen")
        .option("pot", str(pot))
        .option("stream", name)
        .option("checkpointLocation", str(pot / f"benchmark-{name}"))
        .trigger(availableNow=True)
        .start()
    )


def _verify(folder: Path, query: tureen.StandingQuery, *, kept: bool, rows: int) -> None:
    """Compare an answer with that of DuckDB over the files."""
    about = query.explain()["kept_join"]
    if kept:
        assert about["used"], about
        assert about["joined_tuples"] == rows, about
    over_files = query.sql.replace("FROM a JOIN b", "FROM {} a JOIN {} b")
    sql = over_files.format(*(f"read_parquet('{folder / name}/*.parquet')" for name in STREAMS))
    answer = sorted(tuple(row.values()) for row in query.invoke())
    assert answer == sorted(duckdb.sql(sql).fetchall()), f"wrong answer of {query.sql}"


def spark_join(
    spark: SparkSession, folder: Path, count: int, *, selective: bool = False, counted: bool = False
) -> float:
    """Rows per second of Spark's stream-stream join of the files of a folder, with a streaming query for each.

    A kept join has all joined tuples, whatever its queries select, and so has Spark's. If it is `selective`, Spark
    applies the selections of one of our queries before the join, and keeps a hundredth of the tuples. If it is
    `counted`, Spark counts the joined tuples too, and their number is verified, which takes a little longer.
    """
    with TemporaryDirectory(dir=folder.parent) as checkpoints:
        rate = _spark_join(spark, folder, count, Path(checkpoints), selective=selective, counted=counted)
    unload_state(spark)
    return rate


def unload_state(spark: SparkSession) -> None:
    """Free the state of streaming queries that have ended, which Spark does once a minute."""
    java: Any = spark._jvm
    java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    java.System.gc()


def _spark_join(
    spark: SparkSession, folder: Path, count: int, checkpoints: Path, *, selective: bool, counted: bool
) -> float:
    queries = []
    began = time.perf_counter()
    for number in range(count):
        sides = [
            spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 2)
            .parquet(str(folder / name))
            .selectExpr(f"k AS {name}_k", f"x AS {name}_x", f"v AS {name}_v", f"ts AS {name}_ts")
            for name in STREAMS
        ]
        joined = sides[0].join(sides[1], sides[0]["a_k"] == sides[1]["b_k"])
        if selective:
            joined = joined.where(f"a_x >= {number % 997} AND a_x <= {number % 997 + 2} AND b_x < 10")
        if counted:
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
        if counted:
            results = sum(progress["observedMetrics"]["joined"]["rows"] for progress in query.recentProgress)
            assert results == rows // len(STREAMS), f"Spark's join has {results:,} rows"
    return float(rows / seconds)
