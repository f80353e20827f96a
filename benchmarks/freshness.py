"""(d) Time from push to visible, one row at a time: in process, over HTTP, and in a new process; (e) in a join.

Beside it, the time of Spark's no-op sink behind the same source, which answers would have to wait for otherwise.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

import tureen
from benchmarks.ceiling import Delays
from benchmarks.report import Report
from benchmarks.service import serving
from tureen.pipeline.data_source import InboxDataSource
from tureen.position import PushPosition, parse_position

PUSHES = 200
NO_OP_PUSHES = 40
COLD_STARTS = 5

COLD = """
import sys, tureen
with tureen.open(sys.argv[1]) as soup:
    soup.create_stream("s", "a INT")
    soup.push("s", [{"a": 1}, {"a": 2}])
    query = soup.register("SELECT a FROM s WHERE a > 1")
    print(query.invoke().table.to_pylist(), flush=True)
"""


def measure(spark: SparkSession, root: Path, report: Report) -> None:
    """Measure all of them."""
    _in_process(spark, root, report)
    _joined(root, report)
    _over_http(root, report)
    _cold(root, report)


def _in_process(spark: SparkSession, root: Path, report: Report) -> None:
    """Push a row and invoke a query that selects it; then push rows through the no-op sink."""
    with tureen.open(root / "fresh", mode="write") as soup:
        soup.create_stream("s", "a INT")
        query = soup.register("SELECT a FROM s WHERE a >= 0", materialize=True)
        soup.push("s", [{"a": -1}])
        soup.settle()
        visible = []
        for number in range(PUSHES):
            began = time.perf_counter()
            at = soup.push("s", [{"a": number}])
            answer = query.invoke(wait_for=at)
            visible.append(time.perf_counter() - began)
            assert len(answer) == number + 1
        derived = _derived(soup)
        no_op = _no_op(spark, soup)
    delays = Delays.of(visible)
    report.reach("visible", 1000 * delays.p50)
    report.reach("visible late", 1000 * delays.p99)
    report.reach("derived", 1000 * (statistics.median(derived) - delays.p50))
    report.add("push to visible, three derived streams later, p99", 1000 * Delays.of(derived).p99, "ms")
    report.add("push to visible, one row, worst", 1000 * delays.worst, "ms")
    report.add("Spark's no-op sink behind the same source, p50", 1000 * no_op, "ms")


def _derived(soup: tureen.Soup) -> list[float]:
    """Push rows to a stream from which others are derived, in three levels, and invoke a query over the last."""
    soup.create_stream("first", "a INT")
    for source, name in pairwise(["first", "second", "third", "fourth"]):
        soup.create_stream(name, query=f"SELECT a + 1 AS a FROM {source} WHERE a >= 0")
    query = soup.register("SELECT a FROM fourth", materialize=True)
    soup.push("first", [{"a": -1}])
    soup.settle()
    seconds = []
    for number in range(PUSHES):
        began = time.perf_counter()
        at = soup.push("first", [{"a": number}])
        answer = query.invoke(wait_for=at)
        seconds.append(time.perf_counter() - began)
        assert answer.table.column("a").to_pylist() == [value + 3 for value in range(number + 1)]
    return seconds


def _joined(root: Path, report: Report) -> None:
    """Push rows of which each has a partner, and invoke by turns a selection and a join whose results are kept."""
    with tureen.open(root / "fresh-join", mode="write") as soup:
        for name in ("a", "b"):
            soup.create_stream(name, "k INT, v INT")
        selection = soup.register("SELECT k, v FROM a WHERE k >= 0", materialize=True)
        join = soup.register("SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k", materialize=True)
        soup.push("b", [{"k": number, "v": -number} for number in range(2 * PUSHES)])
        soup.push("a", [{"k": -1, "v": 0}])
        soup.settle()
        assert join.explain()["kept_join"]["used"], "the join is not kept"
        delays: dict[str, list[float]] = {"selection": [], "join": []}
        for number in range(2 * PUSHES):
            kind = "join" if number % 2 else "selection"
            query = join if number % 2 else selection
            began = time.perf_counter()
            at = soup.push("a", [{"k": number, "v": number}])
            answer = query.invoke(wait_for=at)
            delays[kind].append(time.perf_counter() - began)
            assert len(answer) == number + 1, f"{kind}: {len(answer)} rows after {number + 1} pushes"
    medians = {kind: statistics.median(of_kind) for kind, of_kind in delays.items()}
    report.add("push to visible in a selection, beside a join, p50", 1000 * medians["selection"], "ms")
    report.add("push to visible in a kept join, p50", 1000 * medians["join"], "ms")
    report.reach("visible joined", medians["join"] / medians["selection"])


def _over_http(root: Path, report: Report) -> None:
    """Push rows over HTTP, one at a time, while another client follows a query."""
    with serving(root / "followed") as (_, url, token):
        soup = tureen.connect(url, token=token)
        soup.create_stream("s", "a INT")
        changes = soup.register("SELECT a FROM s WHERE a >= 0").changes(timeout=60)
        received: queue.Queue[tuple[int, float]] = queue.Queue()

        def follow() -> None:
            for _, change in zip(range(PUSHES), changes, strict=False):
                received.put((change.row["a"], time.perf_counter()))

        follower = threading.Thread(target=follow)
        follower.start()
        delays = []
        for number in range(PUSHES):
            began = time.perf_counter()
            soup.push("s", [{"a": number}])
            value, at = received.get(timeout=60)
            assert value == number
            delays.append(at - began)
        follower.join()
        soup.close()
    report.reach("followed", 1000 * statistics.median(delays))
    report.add("push to a follower's hands over HTTP, one row, p99", 1000 * Delays.of(delays).p99, "ms")


def _cold(root: Path, report: Report) -> None:
    """Start a process that creates a stream, pushes, registers and invokes, while Spark starts behind.

    The first start, which is not counted, writes the bytecode of all modules that have none. Where Python writes none,
    as PYTHONDONTWRITEBYTECODE asks for, it would compile hundreds of them at each start.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    for number in range(1 + COLD_STARTS):
        began = time.perf_counter()
        command = [sys.executable, "-c", COLD, str(root / f"cold{number}")]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "[{'a': 2}]\n"
            seconds.append(time.perf_counter() - began)
        assert process.returncode == 0
    report.reach("cold", statistics.median(seconds[1:]))


def _no_op(spark: SparkSession, soup: tureen.Soup) -> float:
    spark.dataSource.register(InboxDataSource)
    source = spark.readStream.format("tureen_inbox").option("pot", str(soup.path)).load()
    query = source.writeStream.format("noop").option("checkpointLocation", str(soup.path / "noop")).start()
    delays = []
    try:
        for number in range(NO_OP_PUSHES + 3):
            began = time.perf_counter()
            pushed = parse_position(soup.push("s", [{"a": number}]))
            assert isinstance(pushed, PushPosition)
            while _reached(query) < pushed.end:
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
