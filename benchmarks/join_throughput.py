"""Rows per second of two streams through Spark, with join queries and without; beside it Spark's stream-stream join.

Every key occurs once in each stream, so that each tuple has one partner. Rows per second are those of both streams
together, from the start of both streaming queries until all rows are in runs and, where results are kept, joined.
Spark has as many partitions as cores and its state in memory, and drops its results, which are counted once. The state
of a streaming query that has ended is unloaded, so that no round pays for the garbage collections of another.

Each side has a JVM of its own with the same settings, as in use. In one JVM, the code and the garbage of each side
change how quickly the other one runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import tureen
from benchmarks.outside import PeerFailed
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.spark_join_job import FILES_PER_BATCH, SCHEMA, STREAMS, JoinRequest, selections

START = 1_700_000_000_000_000
CASES: dict[str, tuple[int, bool | str]] = {
    "no query": (0, False),
    "1,000 joins, auto": (1_000, "auto"),
    "1 join, kept": (1, True),
    "1,000 joins, kept": (1_000, True),
}
"""The number of join queries of each case, and how they are registered."""

SPARK_JOIN = "Spark's stream-stream join"

PARALLEL = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
"""Half of the processor time of Spark's join is garbage collections, and less with this collector."""

FEW_FILES = 2
"""The number of files of each stream for many of Spark's streaming queries: each of them reads and joins all rows.

They are smaller too, because each streaming query has all of their rows in memory."""


def measure(spark: SparkSession, root: Path, report: Report, scale: Scale) -> None:
    """Measure each case and Spark's own join in several rounds, by turns and after the same rounds of warm-up.

    In the rounds of warm-up, the JVMs compile what they run.
    """
    files, rows = max(scale.files // 2, 2), scale.rows_per_file // 2
    write_files(root / "files", files, rows)
    cases: dict[str, Callable[[], float]] = {case: partial(_once, spark, root, case, files * rows) for case in CASES}
    join_of_files = JoinRequest(str(root / "files"))
    with SparkJoinProcess() as spark_joins:
        cases[SPARK_JOIN] = partial(spark_joins.rate, join_of_files)
        spark_joins.rate(JoinRequest(str(root / "files"), counted=True))
        typical = _typical_rates(cases, scale)
        for case in CASES:
            report.add(f"rows/s of two streams, {case}", typical[case], "rows/s")
        none, kept = typical["no query"], typical["1 join, kept"]
        report.reach("joins auto", typical["1,000 joins, auto"] / none)
        report.reach("join kept", kept / none)
        report.reach("joins kept", typical["1,000 joins, kept"] / kept)
        write_files(root / "few", FEW_FILES, rows // 4)
        many = scale.spark_joins
        theirs = spark_joins.rate(JoinRequest(str(root / "few"), many))
        comparisons = (
            (1, "spark join", "files", kept, typical[SPARK_JOIN]),
            (many, "spark joins", "few", typical["1,000 joins, kept"], theirs),
        )
        for count, goal, folder, ours, theirs in comparisons:
            report.add(f"rows/s of Spark's stream-stream join, {count} streaming queries", theirs, "rows/s")
            report.reach(goal, ours / theirs)
            selective = spark_joins.rate(JoinRequest(str(root / folder), count, selective=True))
            report.add(f"the same with the selections of the queries, {count} streaming queries", selective, "rows/s")
    with SparkJoinProcess(PARALLEL) as spark_joins:
        case = f"{SPARK_JOIN}, with Java's parallel garbage collector"
        rate = _typical_rates({case: partial(spark_joins.rate, join_of_files)}, scale)[case]
    report.add(f"rows/s of {case}", rate, "rows/s")


def _typical_rates(cases: Mapping[str, Callable[[], float]], scale: Scale) -> dict[str, float]:
    """The median rate of each case."""
    rates: dict[str, list[float]] = {case: [] for case in cases}
    for number in range(scale.join_warm_ups + scale.rounds):
        for case, run in cases.items():
            rate = run()
            print(f"    {case}: {rate:,.0f} rows/s", flush=True)
            if number >= scale.join_warm_ups:
                rates[case].append(rate)
    return {case: statistics.median(of_case) for case, of_case in rates.items()}


class SparkJoinProcess:
    """A process with a JVM of its own that measures Spark's stream-stream joins."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """Start the process, with these settings of Spark."""
        command = [sys.executable, "-m", "benchmarks.spark_join_job", json.dumps(dict(settings or {}))]
        # In a new session, so that the JVM can be killed with it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def rate(self, request: JoinRequest) -> float:
        """Rows per second of a join; raises if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                return float(json.loads(line)["rows_per_second"])
        raise PeerFailed(f"Spark's join ended with exit code {self._process.wait()}")

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process and its JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


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
    return f"SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE {selections(number, '.')}"


def _send(spark: SparkSession, root: Path, pot: Path, name: str) -> Any:
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH)
    return (
        frame.parquet(str(root / "files" / name))
        .writeStream.format("tureen")
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
