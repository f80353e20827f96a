"""`make bench`: all measurements, or those named on the command line (see `PARTS`)."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import aggregates, alerts, cacq, freshness, invocation, peers, service, throughput
from benchmarks.report import Report
from tureen.pipeline.session import spark_session

PARTS = ("throughput", "peers", "invoke", "aggregate", "alerts", "cacq", "fresh", "service")


def main() -> int:
    """Run the parts in one process, so that ratios are of one run."""
    wanted = sys.argv[1:] or list(PARTS)
    if not set(wanted) <= set(PARTS):
        print(f"usage: python -m benchmarks [{'|'.join(PARTS)}] …", file=sys.stderr)
        return 2
    root = Path(tempfile.mkdtemp(prefix="tureen-bench-"))
    report = Report()
    # Room for the peers, whose plans hold a thousand filters; ours does without.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
    spark = spark_session("local[2]")
    try:
        if "invoke" in wanted:
            print("Invocation", flush=True)
            invocation.measure(root, report)
        if "aggregate" in wanted:
            print("Aggregates", flush=True)
            aggregates.measure(root, report)
        if "alerts" in wanted:
            print("Alert rules", flush=True)
            alerts.measure(root, report)
        if "cacq" in wanted:
            print("CACQ", flush=True)
            cacq.measure(report)
        if "fresh" in wanted:
            print("Freshness", flush=True)
            freshness.measure(spark, root, report)
        if "service" in wanted:
            print("Service", flush=True)
            service.measure(root, report)
        rates: dict[int, float] = {}
        if "throughput" in wanted or "peers" in wanted:
            print("Throughput", flush=True)
            rates = throughput.measure(spark, root, report)
        if "peers" in wanted:
            print("Peers", flush=True)
            peers.measure(spark, root / "peers", report, rates)
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)
    report.write("embedded" if wanted == list(PARTS) else "-".join(wanted))
    return 0 if all(line.met != "NOT met" for line in report.lines) else 1


if __name__ == "__main__":
    sys.exit(main())
