"""(a) Rows per second through the Spark pipeline, with no query and with many, results materialised."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import tureen
from benchmarks.report import Report
from benchmarks.workload import SCHEMA, conditions, register_all, truth, tuples

ROWS_PER_FILE = 262_144
FILES = 24
FILES_PER_BATCH = 4
ROUNDS = 3


def write_files(folder: Path) -> pa.Table:
    """The tuples as Parquet files, and all of them as a table."""
    folder.mkdir()
    parts = [tuples(ROWS_PER_FILE, number) for number in range(FILES)]
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number:03}.parquet", compression="none")
    return pa.concat_tables(parts)


def run(spark: SparkSession, soup: tureen.Soup, folder: Path, stream: str, checkpoint: Path) -> float:
    """Send all files through `format("tureen")`; rows per second, without the first batch, which warms up."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(str(folder))
    query = (
        frame.writeStream.format("tureen")
        .option("pot", str(soup.path))
        .option("stream", stream)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [one for one in query.recentProgress if one["numInputRows"]][1:]
    seconds = sum(one["batchDuration"] for one in batches) / 1000
    return float(sum(one["numInputRows"] for one in batches) / seconds)


def verify(wanted: Sequence[str], handles: Sequence[tureen.StandingQuery], table: pa.Table) -> None:
    """Every 64th query (all where there are few) equals numpy's answer, row by row."""
    step = max(1, len(wanted) // 64)
    for where, handle in list(zip(wanted, handles, strict=True))[::step]:
        assert handle.explain()["tuples_by_path"]["published"] == len(table), "a cell is owed"
        answer = handle.invoke().table
        expected = table.filter(pa.array(truth(table, where)))
        assert answer.equals(expected.cast(answer.schema)), f"wrong answer for {where}"


def measure(spark: SparkSession, root: Path, report: Report) -> dict[int, float]:
    """Rows per second by number of queries: the best of several rounds, taken in turns."""
    table = write_files(root / "files")
    best: dict[int, float] = {}
    for number in range(ROUNDS):
        for count in (0, 128, 4096):
            with tureen.open(root / f"pot-{number}-{count}", mode="write") as soup:
                soup.start(wait=120)
                soup.create_stream("r", SCHEMA, time="ts")
                wanted = conditions(count)
                handles = register_all(soup, "r", wanted)
                soup.settle()
                time.sleep(1.0)
                # What earlier rounds wrote must not be flushed at this one's expense.
                os.sync()
                rate = run(spark, soup, root / "files", "r", root / f"checkpoint-{number}-{count}")
                if number == 0:
                    verify(wanted, handles, table)
                best[count] = max(best.get(count, 0.0), rate)
            shutil.rmtree(root / f"pot-{number}-{count}")
            print(f"    round {number + 1}, {count} queries: {rate:,.0f} rows/s", flush=True)
    report.add("rows/s through Spark, no query", best[0], "rows/s")
    report.add("rows/s through Spark, 128 queries", best[128], "rows/s")
    report.add("rows/s through Spark, 4,096 queries", best[4096], "rows/s")
    report.add("128 queries / none", best[128] / best[0], "")
    report.add("4,096 queries / none", best[4096] / best[0], "", ">= 0.5")
    return best
