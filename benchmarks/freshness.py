"""(d) Time from push to visible, one row at a time, compared with Spark's no-op sink behind the same source."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from pyspark.sql import SparkSession

import tureen
from benchmarks.report import Report
from tureen.pipeline.data_source import InboxDataSource

PUSHES = 40


def measure(spark: SparkSession, root: Path, report: Report) -> None:
    """Push a row and wait until an answer contains it; then the same rows through the no-op sink."""
    with tureen.open(root / "fresh", mode="write") as soup:
        soup.create_stream("s", "a INT")
        query = soup.register("SELECT a FROM s WHERE a >= 0", materialize=True)
        soup.wait(soup.push("s", [{"a": -1}]), timeout=120)
        visible = []
        for number in range(PUSHES):
            began = time.perf_counter()
            at = soup.push("s", [{"a": number}])
            answer = query.invoke(wait_for=at)
            visible.append(time.perf_counter() - began)
            assert len(answer) == number + 1
        no_op = _no_op(spark, soup)
    ours = statistics.median(visible)
    report.add("push to visible, one row, p50", ours, "s", "<= 1")
    report.add("push to visible, one row, worst", max(visible), "s")
    report.add("Spark's no-op sink behind the same source, p50", no_op, "s")
    report.reach("visible", ours / no_op)


def _no_op(spark: SparkSession, soup: tureen.Soup) -> float:
    spark.dataSource.register(InboxDataSource)
    source = spark.readStream.format("tureen_inbox").option("pot", str(soup.path)).load()
    query = source.writeStream.format("noop").option("checkpointLocation", str(soup.path / "noop")).start()
    delays = []
    try:
        for number in range(PUSHES + 3):
            began = time.perf_counter()
            end = int(soup.push("s", [{"a": number}]).split(".")[2])
            while _reached(query) < end:
                assert time.perf_counter() - began < 60, "the no-op query does not move"
                time.sleep(0.002)
            delays.append(time.perf_counter() - began)
    finally:
        query.stop()
    return statistics.median(delays[3:])


def _reached(query: object) -> int:
    progress = query.lastProgress  # type: ignore[attr-defined]
    if not progress or not progress["sources"][0]["endOffset"]:
        return 0
    end = progress["sources"][0]["endOffset"]
    return int((json.loads(end) if isinstance(end, str) else end).get("1", 0))
