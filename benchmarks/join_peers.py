"""The same joins of streams by Tureen, Spark and Flink in one run: of two streams, and of a chain of four.

Tureen's is a derived stream: every tuple and every result is written to disk. The others read files, keep their state
in memory and drop the results. Rows per second are those of all streams together; of Spark and Flink the difference of
two sizes, which leaves out what they do once. Results are compared with DuckDB's: of each engine, and of each plan of
a followed join.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

import tureen
from benchmarks.join_flink import measure_flink_join
from benchmarks.join_workload import FOUR, TWO, JoinWorkload
from benchmarks.outside import PeerFailed
from benchmarks.peers_spark import slope
from benchmarks.report import Report
from benchmarks.scale import QUICK, Scale
from tureen.plan_hint import PlanHint
from tureen.position import Position
from tureen.testing.manual_engine import ManualEngine

PUSH_ROWS = 20_000
WARM_ROWS = 2_000
"""The rows of a stream in a first run, in which loops are compiled."""
PLANS = {
    "eddy": PlanHint("eddy", None),
    "left-deep": PlanHint("left-deep", False),
    "left-deep with feedback": PlanHint("left-deep", True),
    "bushy": PlanHint("bushy", False),
    "bushy with feedback": PlanHint("bushy", True),
}
GOALS = {"two": ("derived join", "derived join flink"), "four": ("four spark", "four flink")}


def measure(spark: SparkSession, root: Path, report: Report, scale: Scale) -> None:
    """Measure both joins by all engines."""
    for name, workload, rows in (("two", TWO, scale.peer_join_rows), ("four", FOUR, scale.peer_join_rows // 2)):
        folder = root / "join_peers" / name
        tables = workload.tables(rows)
        expected = workload.expected(tables)
        what = f"rows/s of a join of {name} streams of {rows:,} rows"
        few = workload.tables(WARM_ROWS)
        _derived(folder / "warm-up", workload, few, workload.expected(few))
        ours = _derived(folder / "pot", workload, tables, expected)
        report.add(f"{what}, derived into a stream", ours, "rows/s")
        theirs, state = _spark(spark, folder, workload, rows, expected)
        report.add(f"{what}, Spark's stream-stream joins", theirs, "rows/s")
        report.add(f"the state of Spark's joins of {name} streams", state / 1e6, "MB")
        spark_goal, flink_goal = GOALS[name]
        report.reach(spark_goal, ours / theirs)
        if scale is QUICK:
            report.miss(flink_goal, "with tiny sizes, Flink would be installed first")
        else:
            _flink(folder, workload, rows, report, flink_goal, ours, f"{what}, Flink's joins")
        if name == "four":
            _plans(folder, workload, tables, expected, report)


def _flink(folder: Path, workload: JoinWorkload, rows: int, report: Report, goal: str, ours: float, what: str) -> None:
    try:
        theirs, state = measure_flink_join(folder, workload, rows, report)
    except PeerFailed as error:
        report.miss(goal, str(error))
        return
    report.add(what, theirs, "rows/s")
    if state is not None:
        report.add("the state of the same, its largest checkpoint", state / 1e6, "MB")
    report.reach(goal, ours / theirs)


def _plans(
    folder: Path, workload: JoinWorkload, tables: Mapping[str, pa.Table], expected: tuple[float, ...], report: Report
) -> None:
    few = workload.tables(WARM_ROWS)
    for plan, hint in PLANS.items():
        _followed(folder, workload, few, hint, workload.expected(few))
        rate, tuples, size = _followed(folder, workload, tables, hint, expected)
        report.add(f"rows/s of the join alone, followed, plan {plan}", rate, "rows/s")
        report.add(f"intermediate results and tuples that plan {plan} holds", tuples, "")
        report.add(f"the same in bytes, plan {plan}", size / 1e6, "MB")
    report.note("The SteMs of an eddy are the streams themselves: it holds nothing else.")


def _blocks(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """The tuples of all streams by turns."""
    for start in range(0, max(map(len, tables.values())), PUSH_ROWS):
        for name, table in tables.items():
            yield name, table.slice(start, PUSH_ROWS)


def _derived(pot: Path, workload: JoinWorkload, tables: Mapping[str, pa.Table], expected: tuple[float, ...]) -> float:
    """Rows per second, from the first push until the derived stream has all joined rows."""
    with tureen.open(pot, mode="write") as soup:
        for name, columns in workload.streams.items():
            soup.create_stream(name, f"{columns}, ts TIMESTAMP", time="ts", clock="stream")
        soup.create_stream("joined", query=workload.sql)
        soup.start(wait=120)
        began, position = time.perf_counter(), ""
        for name, block in _blocks(tables):
            position = soup.push(name, block)
        soup.wait(position, timeout=600)
        seconds = time.perf_counter() - began
        (sums,) = soup.answer_once(f"SELECT {workload.checked} FROM joined")
        _check(tuple(sums.values()), expected, "the derived stream")
    return sum(map(len, tables.values())) / seconds


def _followed(
    root: Path, workload: JoinWorkload, tables: Mapping[str, pa.Table], hint: PlanHint, expected: tuple[float, ...]
) -> tuple[float, int, int]:
    """Rows per second of joining and reading, without pushes; the tuples and bytes that the plan holds in the end."""
    parts, seconds = [], 0.0
    with TemporaryDirectory(dir=root) as folder:
        engine = ManualEngine(Path(folder))
        try:
            for name, columns in workload.streams.items():
                engine.create_stream(name, f"{columns}, ts TIMESTAMP", time="ts", clock="stream")
            handle = engine.register(workload.sql, materialize=False, hint=hint)
            position = Position.parse(engine.invoker.new_rows(handle, None).position())
            follower = engine.invoker.follow(handle)
            for name, block in _blocks(tables):
                engine.append(name, block)
                began = time.perf_counter()
                new = engine.invoker.new_rows(handle, position, follower)
                seconds += time.perf_counter() - began
                position = Position.parse(new.position())
                parts.append(new.rows)
            (operator,) = engine.invoker.followers.joins.operators()
            tree = operator.join.tree
            held = (0, 0) if tree is None else (tree.tuples, tree.bytes)
        finally:
            engine.close()
    with duckdb.connect() as database:
        database.register("joined", pa.concat_tables(parts))
        row = database.execute(f"SELECT {workload.checked} FROM joined").fetchone()
    assert row is not None
    _check(row, expected, f"the followed join with {hint}")
    return sum(map(len, tables.values())) / seconds, *held


def _spark(
    spark: SparkSession, root: Path, workload: JoinWorkload, rows: int, expected: tuple[float, ...]
) -> tuple[float, float]:
    """Rows per second of Spark's stream-stream joins in a row, and the bytes of their state in the end."""
    durations, sizes, state = [], (rows // 4, rows), 0.0
    for size in sizes:
        tables = workload.tables(size)
        folder = workload.write(root / f"spark-{size}", tables) / "parquet"
        # The first run is the warm-up, and is verified.
        sums, _, _ = _run_spark(spark, folder, workload, "memory")
        _check(sums, expected if size == rows else workload.expected(tables), "Spark's join")
        _, seconds, state = _run_spark(spark, folder, workload, "noop")
        durations.append(seconds)
    total = len(workload.streams)
    return slope((total * sizes[0], total * sizes[1]), (durations[0], durations[1])), state


def _run_spark(
    spark: SparkSession, folder: Path, workload: JoinWorkload, sink: str
) -> tuple[tuple[float, ...], float, float]:
    """The sums of the result, if it is kept, the seconds, and the bytes of the state."""
    for name, columns in workload.streams.items():
        frame = spark.readStream.schema(f"{columns}, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
        frame.parquet(str(folder / name)).createOrReplaceTempView(name)
    with TemporaryDirectory(dir=folder) as checkpoint:
        writer = spark.sql(workload.sql).writeStream.format(sink).queryName("joined")
        began = time.perf_counter()
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began
    operators = [progress["stateOperators"] for progress in query.recentProgress if progress["stateOperators"]]
    state = sum(operator["memoryUsedBytes"] for operator in operators[-1])
    sums: tuple[float, ...] = ()
    if sink == "memory":
        (row,) = spark.sql(f"SELECT {workload.checked} FROM joined").collect()
        sums = tuple(row)
        spark.catalog.dropTempView("joined")
    for name in workload.streams:
        spark.catalog.dropTempView(name)
    return sums, seconds, float(state)


def _check(sums: tuple[float, ...], expected: tuple[float, ...], subject: str) -> None:
    if tuple(map(float, sums)) != expected:
        raise AssertionError(f"{subject} has the sums {sums}, and DuckDB's {expected}")
