"""(a) Rows per second through the Spark pipeline, without queries and with many, by mode of materialization."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import tureen
from benchmarks.pots import MATERIALIZE, STREAM, QueryPots, RegisteredQueries
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.workload import SCHEMA, truth, tuples

NONE = ("materialised", 0)
Rates = Mapping[tuple[str, int], float]
"""Rows per second by mode and number of queries."""


def write_files(folder: Path, files: int, rows: int) -> pa.Table:
    """The tuples as Parquet files, and all of them as a table."""
    folder.mkdir(parents=True)
    parts = [tuples(rows, number) for number in range(files)]
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number:03}.parquet", compression="none")
    return pa.concat_tables(parts)


def run(spark: SparkSession, pot: Path, folder: Path, files_per_batch: int) -> float:
    """Send all files through `format("tureen")`; rows per second without the first batch, which is the warm-up."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_per_batch).parquet(str(folder))
    query = (
        frame.writeStream.format("tureen")
        .option("pot", str(pot))
        .option("stream", STREAM)
        .option("checkpointLocation", str(pot / "benchmark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]][1:]
    seconds = sum(progress["batchDuration"] for progress in batches) / 1000
    return float(sum(progress["numInputRows"] for progress in batches) / seconds)


def verify(soup: tureen.Soup, registered: RegisteredQueries, table: pa.Table, *, published: bool) -> None:
    """Compare every 64th answer (all if there are few) with numpy's, row by row."""
    step = max(1, len(registered.wheres) // 64)
    for where, handle in list(zip(registered.wheres, registered.handles, strict=True))[::step]:
        query = soup.query(handle)
        if published:
            assert query.explain()["tuples_by_path"]["published"] == len(table), "a cell is owed"
        answer = query.invoke().table
        expected = table.filter(pa.array(truth(table, where)))
        assert answer.equals(expected.cast(answer.schema)), f"wrong answer for {where}"


def measure(spark: SparkSession, root: Path, report: Report, pots: QueryPots, scale: Scale) -> Rates:
    """Measure each case and report the ratios."""
    rates = _all_cases(spark, root, report, pots, scale)
    _report(rates, report, scale)
    return rates


def _all_cases(
    spark: SparkSession, root: Path, report: Report, pots: QueryPots, scale: Scale
) -> dict[tuple[str, int], float]:
    """Rows per second of each case: the median of several rounds after the first, which is the warm-up.

    Cases with goals get more rounds. Cases take turns, and each round starts with another case, so that the state that
    earlier cases leave varies.
    """
    table = write_files(root / "files", scale.files, scale.rows_per_file)
    small = write_files(root / "small", scale.files // 2, scale.rows_per_small_file)
    cases = [NONE, ("materialised", scale.few), ("materialised", scale.medium), ("materialised", scale.many)]
    cases += [("lazy", scale.few), ("lazy", scale.many)]
    cases += [("auto", scale.few), ("auto", scale.many), ("auto", scale.most)]
    rates: dict[tuple[str, int], list[float]] = {}

    def attempt(case: tuple[str, int], files: str, checked: pa.Table | None) -> float | None:
        try:
            rate = _once(spark, root, pots, case, files, checked, scale)
        except Exception as error:
            # The other cases are still measured.
            report.fail(f"{case[1]:,} queries, {case[0]}: {type(error).__name__}: {error}")
            return None
        print(f"    {case[1]:,} queries, {case[0]}: {rate:,.0f} rows/s", flush=True)
        return rate

    with_goals = [NONE, *((mode, scale.many) for mode in MATERIALIZE)]
    for number in range(scale.rounds + scale.more_rounds):
        chosen = [case for case in cases if number < scale.rounds or case in with_goals]
        first = number % len(chosen)
        for case in chosen[first:] + chosen[:first]:
            rate = attempt(case, "files", table if number == 0 else None)
            if rate is None:
                cases.remove(case)
                rates.pop(case, None)
            else:
                rates.setdefault(case, []).append(rate)
    typical = {case: statistics.median(case_rates[1:] or case_rates) for case, case_rates in rates.items()}
    # By far the slowest, and without a goal: once, on fewer rows.
    last = ("materialised", scale.most)
    rate = attempt(last, "small", small)
    if rate is not None:
        typical[last] = rate
    return typical


def _once(
    spark: SparkSession,
    root: Path,
    pots: QueryPots,
    case: tuple[str, int],
    files: str,
    checked: pa.Table | None,
    scale: Scale,
) -> float:
    mode, count = case
    pot = root / "pot"
    shutil.rmtree(pot, ignore_errors=True)
    registered = pots.copy(mode, count, pot)
    with tureen.open(pot, mode="write") as soup:
        soup.start(wait=120)
        soup.settle()
        time.sleep(1.0)
        # Flush the files of earlier rounds before this one.
        os.sync()
        rate = run(spark, pot, root / files, scale.files_per_batch)
        if checked is not None:
            verify(soup, registered, checked, published=mode == "materialised")
    return rate


def _report(rates: Rates, report: Report, scale: Scale) -> None:
    without_queries = rates[NONE]
    report.add("rows/s through Spark, no query", without_queries, "rows/s")
    for (mode, count), rate in rates.items():
        if count:
            report.add(f"rows/s through Spark, {count:,} queries, {mode}", rate, "rows/s")
            report.add(f"{count:,} queries, {mode} / none", rate / without_queries, "")
    for mode in MATERIALIZE:
        if (mode, scale.many) in rates:
            report.reach(mode, rates[mode, scale.many] / without_queries)
        if {(mode, scale.few), (mode, scale.most)} <= set(rates):
            report.reach(f"growth {mode}", rates[mode, scale.few] / rates[mode, scale.most])
