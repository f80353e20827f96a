"""`make bench`: all parts, or those named on the command line (see `PARTS`), in one process.

`--quick` takes tiny sizes, to see that everything works; what it finds is written to a temporary folder and means
nothing.
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
    cacq_plots,
    churn,
    dense,
    freshness,
    invocation,
    limits,
    machine,
    peers,
    psoup,
    service,
    soak,
    throughput,
)
from benchmarks.pots import QueryPots
from benchmarks.report import RESULTS, Report
from benchmarks.scale import FULL, QUICK, Scale
from tureen.pipeline.session import spark_session, stop_session


@dataclass
class Bench:
    """What the parts of one run share."""

    spark: SparkSession
    root: Path
    report: Report
    scale: Scale
    pots: QueryPots
    load: soak.Soak
    rates: throughput.Rates = field(default_factory=dict)
    """What `throughput` found, with which `peers` compares."""

    def invoke(self) -> None:
        """Invocation over a million rows."""
        invocation.measure(self.root, self.report)

    def aggregate(self) -> None:
        """Aggregates over a million rows."""
        aggregates.measure(self.root, self.report)

    def cacq(self) -> None:
        """CACQ's experiments."""
        cacq_plots.plot(cacq.measure(self.report), self.report)

    def psoup(self) -> None:
        """PSoup's experiments."""
        folder = self.root / "psoup"
        folder.mkdir()
        psoup.plot(psoup.measure(folder, self.report, quick=self.scale is QUICK), self.report.folder)
        for plot in sorted(self.report.folder.glob("psoup-*.svg")):
            self.report.plot(plot.name, plot.stem)

    def fresh(self) -> None:
        """From push to visible."""
        freshness.measure(self.spark, self.root, self.report)

    def throughput(self) -> None:
        """Rows per second through Spark."""
        self.rates = throughput.measure(self.spark, self.root / "throughput", self.report, self.pots, self.scale)

    def peers(self) -> None:
        """The same by others."""
        peers.measure(self.spark, self.root / "peers", self.report, self.rates, self.scale)

    def churn(self) -> None:
        """Queries that come and go."""
        churn.measure(self.root, self.report, self.scale)

    def alerts(self) -> None:
        """The ceiling of alert rules."""
        alerts.measure(self.root, self.report, self.scale)

    def dense(self) -> None:
        """The ceiling of dense selections."""
        dense.measure(self.root, self.report, self.pots, self.scale)

    def service(self) -> None:
        """The service under load; it has a Spark of its own, and this process's would take its processor."""
        stop_session()
        service.measure(self.root, self.report)

    def limits(self) -> None:
        """Other clients while somebody attacks the server; as `service`, without Spark in this process."""
        stop_session()
        limits.measure(self.root, self.report)

    def soak(self) -> None:
        """A server that is pushed to for long; as `service`, without Spark in this process."""
        stop_session()
        soak.measure(self.root, self.report, self.load)


PARTS: dict[str, Callable[[Bench], None]] = {
    "invoke": Bench.invoke,
    "fresh": Bench.fresh,
    "throughput": Bench.throughput,
    "alerts": Bench.alerts,
    "dense": Bench.dense,
    "churn": Bench.churn,
    "peers": Bench.peers,
    "service": Bench.service,
    "cacq": Bench.cacq,
    "psoup": Bench.psoup,
    "aggregate": Bench.aggregate,
}
"""In the order in which they run."""

LONG = {"limits": Bench.limits, "soak": Bench.soak}
"""Parts that run only where they are named."""


def main() -> int:
    """Run the parts in one process, so that ratios are of one run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what Tureen reaches.")
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"one of {', '.join(PARTS | LONG)}; without one, all but {' and '.join(LONG)}",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything works")
    long = parser.add_argument_group("the soak")
    long.add_argument("--minutes", type=float, default=60, help="how long it lasts (60)")
    long.add_argument("--rate", type=int, default=2_000, help="rows in a second (2,000)")
    long.add_argument("--retain", type=int, default=120, help="seconds of rows that are retained (120)")
    asked = parser.parse_args()
    known = PARTS | LONG
    unknown = [part for part in asked.parts if part not in known]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; the parts are {', '.join(known)}")
    wanted = set(asked.parts or PARTS)
    if "peers" in wanted:
        wanted.add("throughput")
    parts = [part for part in known if part in wanted]
    folder = Path(tempfile.mkdtemp(prefix="tureen-quick-")) if asked.quick else RESULTS
    report = Report(folder, whole=parts == list(PARTS))
    name = "bench" if report.whole else "-".join(parts)
    load = soak.Soak(20, 1_000, 5) if asked.quick else soak.Soak(60 * asked.minutes, asked.rate, asked.retain)
    run(parts, report, QUICK if asked.quick else FULL, name, load)
    print(f"written to {folder / name}.md")
    return 0 if report.all_met() else 1


def run(parts: list[str], report: Report, scale: Scale, name: str, load: soak.Soak) -> None:
    """Run some parts and write after each what was found; one that fails is reported, and the others go on."""
    root = Path(tempfile.mkdtemp(prefix="tureen-bench-"))
    # Room for a hundred streaming queries of Spark's own; ours does without.
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
