"""`make bench`: all parts, or those named on the command line (see `PARTS`), in one process.

`--quick` uses tiny sizes, to check that everything runs; its results go to a temporary folder and are meaningless.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import (
    aggregates,
    alerts,
    cacq,
    cacq_joins,
    cacq_plots,
    churn,
    closed_keys,
    continuous_joins,
    covering,
    dense,
    fanout,
    federation,
    figures,
    followed_groups,
    freshness,
    invocation,
    jit,
    join_growth,
    join_peers,
    join_throughput,
    joins,
    limits,
    lineage_codings,
    machine,
    nexmark,
    pages,
    peers,
    psoup,
    psoup_joins,
    pwjoin,
    pwjoin_plots,
    service,
    sharing,
    soak,
    throughput,
    xml_streams,
)
from benchmarks.pots import QueryPots
from benchmarks.report import RESULTS, Report
from benchmarks.scale import FULL, QUICK, Scale
from tureen.pipeline.session import spark_session, stop_session


@dataclass
class Bench:
    """The state that the parts of a run share."""

    spark: SparkSession
    root: Path
    report: Report
    scale: Scale
    pots: QueryPots
    load: soak.Soak
    rates: throughput.Rates = field(default_factory=dict)
    """The rates that `throughput` measured, for comparison in `peers`."""

    def invoke(self) -> None:
        """Invocation over a million rows."""
        invocation.measure(self.root, self.report)

    def joins(self) -> None:
        """Joins over millions of rows."""
        joins.measure(self.root, self.report, self.scale)

    def join_growth(self) -> None:
        """The growth of joins with inputs and windows."""
        join_growth.plot(join_growth.measure(self.root, self.report, self.scale), self.report)

    def xml(self) -> None:
        """XML in and out."""
        xml_streams.measure(self.root, self.report, self.scale)

    def closed_keys(self) -> None:
        """Millions of closed keys."""
        closed_keys.measure(self.root, self.report, self.scale)

    def covering(self) -> None:
        """Answers from derived streams."""
        covering.measure(self.root, self.report, self.scale)

    def sharing(self) -> None:
        """Sharing of streams in a network."""
        sharing.measure(self.report, self.scale)

    def federation(self) -> None:
        """Flows between four servers."""
        federation.plot(federation.measure(self.root / "federation", self.report, self.scale), self.report)

    def nexmark(self) -> None:
        """The queries of NEXMark over a million events."""
        nexmark.measure(self.root, self.report, self.scale)

    def join_throughput(self) -> None:
        """Rows per second through Spark with joins."""
        folder = self.root / "join_throughput"
        join_throughput.measure(self.spark, folder, self.report, self.scale)

    def continuous_joins(self) -> None:
        """Followed joins."""
        continuous_joins.measure(self.root, self.report, self.scale)

    def join_peers(self) -> None:
        """The same joins by other engines."""
        join_peers.measure(self.spark, self.root, self.report, self.scale)

    def jit(self) -> None:
        """JIT's experiments."""
        jit.plot(jit.measure(self.report, quick=self.scale is QUICK), self.report)

    def aggregate(self) -> None:
        """Aggregates over a million rows."""
        aggregates.measure(self.root, self.report)

    def cacq(self) -> None:
        """CACQ's experiments."""
        cacq_plots.plot(cacq.measure(self.report), self.report)

    def cacq_joins(self) -> None:
        """CACQ's experiments with joins."""
        folder = self.root / "cacq_joins"
        folder.mkdir()
        findings = cacq_joins.measure(self.report, folder, quick=self.scale is QUICK)
        cacq_joins.plot(findings, self.report)

    def pwjoin(self) -> None:
        """PWJoin's experiments."""
        findings = pwjoin.measure(self.root / "pwjoin", self.report, quick=self.scale is QUICK)
        pwjoin_plots.plot(findings, self.report)

    def lineages(self) -> None:
        """Codings of the lineages of joined tuples."""
        lineage_codings.plot(lineage_codings.measure(self.report, quick=self.scale is QUICK), self.report)

    def psoup(self) -> None:
        """PSoup's experiments."""
        folder = self.root / "psoup"
        folder.mkdir()
        psoup.plot(psoup.measure(folder, self.report, quick=self.scale is QUICK), self.report.folder)
        for plot in sorted(self.report.folder.glob("psoup-*.svg")):
            self.report.plot(plot.name, plot.stem)

    def psoup_joins(self) -> None:
        """PSoup's experiments with joins."""
        folder = self.root / "psoup_joins"
        folder.mkdir()
        psoup_joins.plot(psoup_joins.measure(folder, self.report, quick=self.scale is QUICK), self.report)

    def fresh(self) -> None:
        """From push to visible."""
        freshness.measure(self.spark, self.root, self.report)

    def followed_groups(self) -> None:
        """From push to the changes of groups."""
        followed_groups.measure(self.root, self.report, self.scale)

    def throughput(self) -> None:
        """Rows per second through Spark."""
        self.rates = throughput.measure(self.spark, self.root / "throughput", self.report, self.pots, self.scale)

    def peers(self) -> None:
        """The same selections by other engines."""
        peers.measure(self.spark, self.root / "peers", self.report, self.rates, self.scale)

    def churn(self) -> None:
        """Registrations and unregistrations at a high rate."""
        churn.measure(self.root, self.report, self.scale)

    def alerts(self) -> None:
        """The maximum number of alert rules."""
        alerts.measure(self.root, self.report, self.scale)

    def dense(self) -> None:
        """The maximum number of dense selections."""
        dense.measure(self.root, self.report, self.pots, self.scale)

    def service(self) -> None:
        """The service under load; Spark is stopped in this process, because the server runs its own."""
        stop_session()
        service.measure(self.root, self.report)

    def fanout(self) -> None:
        """Thousands of followers; like `service`, without Spark in this process."""
        stop_session()
        fanout.measure(self.root, self.report, self.scale)

    def pages(self) -> None:
        """The service under load, with open pages and without; like `service`, without Spark in this process."""
        stop_session()
        pages.measure(self.root, self.report)

    def limits(self) -> None:
        """Latency of other clients while the server is attacked; like `service`, without Spark in this process."""
        stop_session()
        limits.measure(self.root, self.report)

    def soak(self) -> None:
        """A long steady load on a server; like `service`, without Spark in this process."""
        stop_session()
        soak.measure(self.root, self.report, self.load)


PARTS: dict[str, Callable[[Bench], None]] = {
    "invoke": Bench.invoke,
    "fresh": Bench.fresh,
    "followed_groups": Bench.followed_groups,
    "throughput": Bench.throughput,
    "alerts": Bench.alerts,
    "dense": Bench.dense,
    "churn": Bench.churn,
    "peers": Bench.peers,
    "service": Bench.service,
    "cacq": Bench.cacq,
    "cacq_joins": Bench.cacq_joins,
    "lineages": Bench.lineages,
    "psoup": Bench.psoup,
    "psoup_joins": Bench.psoup_joins,
    "pwjoin": Bench.pwjoin,
    "aggregate": Bench.aggregate,
    "joins": Bench.joins,
    "join_growth": Bench.join_growth,
    "nexmark": Bench.nexmark,
    "join_throughput": Bench.join_throughput,
    "closed_keys": Bench.closed_keys,
    "sharing": Bench.sharing,
    "federation": Bench.federation,
    "xml": Bench.xml,
    "covering": Bench.covering,
    "continuous_joins": Bench.continuous_joins,
    "join_peers": Bench.join_peers,
    "jit": Bench.jit,
}
"""The parts in the order in which they run."""

LONG = {"fanout": Bench.fanout, "pages": Bench.pages, "limits": Bench.limits, "soak": Bench.soak}
"""Parts that run only if they are named."""


def main() -> int:
    """Run the parts in one process, so that ratios compare values of the same run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the performance of Tureen.")
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(PARTS | LONG)} (default: all but {' and '.join(LONG)})",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that everything runs")
    parser.add_argument("--remark", default="", help="conditions of the run, for the report")
    long = parser.add_argument_group("the soak")
    long.add_argument("--minutes", type=float, default=60, help="duration (default: 60)")
    long.add_argument("--rate", type=int, default=2_000, help="rows per second (default: 2,000)")
    long.add_argument("--retain", type=int, default=120, help="retention of the stream in seconds (default: 120)")
    arguments = parser.parse_args()
    known = PARTS | LONG
    unknown = [part for part in arguments.parts if part not in known]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; the parts are {', '.join(known)}")
    selected = set(arguments.parts or PARTS)
    if "peers" in selected:
        selected.add("throughput")
    parts = [part for part in known if part in selected]
    folder = Path(tempfile.mkdtemp(prefix="tureen-quick-")) if arguments.quick else RESULTS
    report = Report(folder, whole=parts == list(PARTS), remark=arguments.remark)
    name = "bench" if report.whole else "-".join(parts)
    load = (
        soak.Soak(20, 1_000, 5)
        if arguments.quick
        else soak.Soak(60 * arguments.minutes, arguments.rate, arguments.retain)
    )
    run(parts, report, QUICK if arguments.quick else FULL, name, load)
    if folder == RESULTS:
        figures.write()
    print(f"written to {folder / name}.md")
    return 0 if report.all_met() else 1


def run(parts: list[str], report: Report, scale: Scale, name: str, load: soak.Soak) -> None:
    """Run parts and write the report after each; a part that fails is reported, and the others still run."""
    root = Path(tempfile.mkdtemp(prefix="tureen-bench-"))
    # Memory for the peers' hundred Spark streaming queries; Tureen does not need it.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
    spark = spark_session("local[2]")
    if scale is FULL and not LONG.keys() >= set(parts):
        print("touching the machine's memory", flush=True)
        touched = machine.touch_memory()
        report.note(
            f"Before the run, {touched / 1e9:.0f} GB of free memory were touched (see `benchmarks/machine.py`)."
        )
    bench = Bench(spark, root, report, scale, QueryPots(root / "queries", report), load)
    try:
        for part in parts:
            report.begin(part)
            try:
                (PARTS | LONG)[part](bench)
            except Exception as error:
                traceback.print_exc()
                report.fail(f"{part} failed: {type(error).__name__}: {error}")
            report.write(name)
    finally:
        stop_session()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
