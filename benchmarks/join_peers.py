"""The same joins of streams by Tureen, Spark and Flink in one run: of two streams, and of a chain of four.

Tureen's is a derived stream: every tuple and every result is durable before the next increment is pushed, and Spark
takes and indexes them meanwhile. Spark and Flink read files, keep their state in memory and drop the results. Rows per
second are those of all streams together. Tureen and Spark get the streams in equal increments (see
`benchmarks/join_increments.py`), Flink all files at once: of the latter the difference of two sizes counts, which
leaves out what it does once. Results are compared with DuckDB's: of each engine, and of each plan of a followed join.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

import tureen
from benchmarks.join_flink import measure_flink_join
from benchmarks.join_increments import INCREMENTS, Pace, increment_rows, increments, typical
from benchmarks.join_spark import SparkJoin
from benchmarks.join_workload import FOUR, TWO, JoinWorkload, check_sums
from benchmarks.machine import family_processor_seconds
from benchmarks.outside import PeerFailed
from benchmarks.report import Report
from benchmarks.scale import QUICK, Scale
from tureen.plan_hint import PlanHint
from tureen.position import Position
from tureen.testing.manual_engine import ManualEngine

PUSH_ROWS = 20_000
"""The rows of a push of the followed joins."""
WARM_ROWS = 2_000
"""The rows of a stream in a first run, in which loops are compiled."""
PLANS = {
    "eddy": PlanHint("eddy", None),
    "left-deep": PlanHint("left-deep", False),
    "left-deep with feedback": PlanHint("left-deep", True),
    "bushy": PlanHint("bushy", False),
    "bushy with feedback": PlanHint("bushy", True),
}
GOALS = {
    "two": {"small": "derived join", "bulk": "derived join bulk", "flink": "derived join flink"},
    "four": {"small": "four spark", "bulk": "four spark bulk", "flink": "four flink"},
}
"""The goals of each join, by kind of increment."""


def measure(spark: SparkSession, root: Path, report: Report, scale: Scale) -> None:
    """Measure both joins by all engines."""
    for name, workload, rows in (("two", TWO, scale.peer_join_rows), ("four", FOUR, scale.peer_join_rows // 2)):
        folder, goals = root / "join_peers" / name, GOALS[name]
        tables = workload.tables(rows)
        expected = workload.expected(tables)
        join = f"a join of {name} streams of {rows:,} rows"
        rates = {}
        for kind in INCREMENTS:
            increment = increment_rows(kind, rows)
            ours, theirs = _paces(spark, folder / kind, workload, tables, increment, report, scale.rounds)
            for engine, pace in {"derived into a stream": ours, "Spark's stream-stream joins": theirs}.items():
                what = f"{join}, {increment:,} of each at a time, {engine}"
                report.add(f"rows/s of {what}", pace.rate, "rows/s")
                report.add("processor time of the same for a million rows", pace.processor_cost, "s")
            report.reach(goals[kind], ours.rate / theirs.rate)
            rates[kind] = ours.rate
        if scale is QUICK:
            report.miss(goals["flink"], "with tiny sizes, Flink would be installed first")
        else:
            what = f"rows/s of {join}, Flink's joins"
            _flink(folder, workload, rows, report, goals["flink"], rates["small"], what)
        if name == "four":
            _plans(folder, workload, tables, expected, report)


def _paces(
    spark: SparkSession,
    folder: Path,
    workload: JoinWorkload,
    tables: Mapping[str, pa.Table],
    increment: int,
    report: Report,
    rounds: int,
) -> tuple[Pace, Pace]:
    """The paces of a derived stream and of Spark, by turns, after a first run of each that is not measured."""
    first = {name: table.slice(0, increment) for name, table in tables.items()}
    paths = [
        workload.write(folder / kind, of_kind, increment) / "parquet"
        for kind, of_kind in {"spark": tables, "spark-first": first}.items()
    ]
    theirs, expected = SparkJoin(spark, workload, *paths), workload.expected(tables)
    theirs.verify(expected)
    _derived(folder / "warm-up", workload, tables, increment, expected)
    paces: tuple[list[Pace], list[Pace]] = [], []
    settled = []
    for number in range(max(rounds, 1)):
        pace, seconds = _derived(folder / f"pot-{number}", workload, tables, increment, expected)
        paces[0].append(pace)
        paces[1].append(theirs.pace())
        settled.append(seconds)
    for what, of_rounds in zip(("Tureen", "Spark"), paces, strict=True):
        report.note(f"{what}, rows/s of each round: {', '.join(f'{pace.rate:,.0f}' for pace in of_rounds)}")
    report.note(f"Until all rows and results were in runs, Tureen took {statistics.median(settled):.1f} s.")
    report.note(f"The state of Spark's joins has {theirs.state_bytes / 1e6:,.0f} MB.")
    return typical(paces[0]), typical(paces[1])


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
    for increment in increments(tables, PUSH_ROWS):
        yield from increment.items()


def _derived(
    pot: Path, workload: JoinWorkload, tables: Mapping[str, pa.Table], increment: int, expected: tuple[float, ...]
) -> tuple[Pace, float]:
    """The pace of a derived stream, and the seconds until all tuples and results are in runs."""
    with tureen.open(pot, mode="write") as soup:
        for name, columns in workload.streams.items():
            soup.create_stream(name, f"{columns}, ts TIMESTAMP", time="ts", clock="stream")
        soup.create_stream("joined", query=workload.sql)
        soup.start(wait=120)
        first, *others = increments(tables, increment)
        _push(soup, first)
        soup.settle()
        began, processor_began = time.perf_counter(), family_processor_seconds()
        for part in others:
            _push(soup, part)
        seconds, processor_ended = time.perf_counter() - began, family_processor_seconds()
        soup.settle()
        in_runs = time.perf_counter() - began
        (sums,) = soup.answer_once(f"SELECT {workload.checked} FROM joined")
        check_sums(tuple(sums.values()), expected, "the derived stream")
    rows = sum(len(table) for part in others for table in part.values())
    return Pace(rows, seconds, processor_ended - processor_began), in_runs


def _push(soup: tureen.Soup, increment: Mapping[str, pa.Table]) -> None:
    """Push an increment, and wait until the derived stream has its results."""
    position = ""
    for name, table in increment.items():
        position = soup.push(name, table)
    soup.wait(position, timeout=600)


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
    check_sums(row, expected, f"the followed join with {hint}")
    return sum(map(len, tables.values())) / seconds, *held
