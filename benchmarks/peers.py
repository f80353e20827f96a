"""(b) The same selections by other engines, in the same run, on the same machine.

All evaluate the queries of PSoup §5.2.1 over the same tuples, and their answers are compared with numpy's before
anything is timed. Tureen reads files through Spark, writes every tuple and every result to disk and commits them.
DuckDB and polars have the tuples in memory and store nothing; Spark's and Flink's jobs read files and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.outside import PeerFailed
from benchmarks.peers_flink import rate_of_flink
from benchmarks.peers_inprocess import PEERS, Peer, rate_of, verify
from benchmarks.peers_spark import many_streams, single_job_rates
from benchmarks.plot import draw_curves
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.throughput import Rates
from benchmarks.workload import conditions, tuples

CHECKED_ROWS = 500
OURS = "Tureen, end to end through Spark"
FIRST_JOB = "Spark, one job with all filters, its first run"
JOB = "Spark, one job with all filters, once Java has compiled it"
STREAMS = "Spark, a streaming query for each"
FLINK = "Flink, a statement set with all filters"


def measure(spark: SparkSession, root: Path, report: Report, ours: Rates, scale: Scale) -> None:
    """Rows per second of every engine at several numbers of queries, and the ratio of Tureen's to each."""
    if not ours:
        raise RuntimeError("Tureen's throughput was not measured")
    root.mkdir(parents=True)
    counts = (scale.few, scale.medium, scale.many)
    rates_by_peer: dict[str, dict[int, float]] = {OURS: {count: ours["materialised", count] for count in counts}}

    def note(count: int, names: Sequence[str], run: Callable[[], Sequence[float]]) -> None:
        try:
            rates = run()
        except PeerFailed as error:
            report.note(f"{names[0]}, {count:,} queries: {error}")
            return
        except Exception as error:
            # The other peers are still measured.
            report.fail(f"{names[0]}, {count:,} queries: {type(error).__name__}: {str(error)[:200]}")
            return
        for name, rate in zip(names, rates, strict=True):
            rates_by_peer.setdefault(name, {})[count] = rate
            report.add(f"{name}, {count:,} queries", rate, "rows/s")
            report.add(f"ours / that, {count:,} queries", ours["materialised", count] / rate, "times")

    for count in counts:
        for kind in PEERS:
            note(count, [kind.name], partial(in_process_rate, kind, count, scale))
    note(scale.few, [STREAMS], lambda: [many_streams(spark, root, scale.few, scale.stream_rows)])
    for count in counts:
        note(
            count,
            [FIRST_JOB, JOB],
            partial(single_job_rates, root, count, scale.job_rows, scale.job_few, scale.job_seconds),
        )
    for count in counts:
        note(count, [FLINK], partial(flink_rate, root, count, scale, report))
    _conclude(rates_by_peer, report, scale)


def flink_rate(root: Path, count: int, scale: Scale, report: Report) -> list[float]:
    """Rows per second of Flink."""
    return [rate_of_flink(root, count, scale.flink_rows, scale.flink_seconds, report)]


def in_process_rate(kind: type[Peer], count: int, scale: Scale) -> list[float]:
    """Rows per second of a peer in this process."""
    wheres, table = conditions(count), tuples(scale.peer_rows, 997)
    peer = kind(wheres)
    verify(peer, wheres, table.slice(0, CHECKED_ROWS))
    least = scale.peer_rows if kind.in_bulk else 1_024
    return [rate_of(lambda rows: peer.run(table.slice(0, rows)), least, scale.peer_rows, scale.peer_seconds)]


def _conclude(rates_by_peer: Mapping[str, Mapping[int, float]], report: Report, scale: Scale) -> None:
    ours = rates_by_peer[OURS]
    comparisons = (("one job", FIRST_JOB, scale.many), ("warm job", JOB, scale.many), ("streams", STREAMS, scale.few))
    for key, name, count in comparisons:
        if count in rates_by_peer.get(name, {}):
            report.reach(key, ours[count] / rates_by_peer[name][count])
        else:
            report.miss(key, f"{name.lower()}, was not measured")
    title = "Rows per second by number of standing queries"
    curves = {name: sorted(rates.items()) for name, rates in rates_by_peer.items()}
    draw_curves(report.plot("peers.svg", title), title, curves, x="standing queries", y="rows/s", base=2)
