"""A Spark session with two executor processes, and two pots: one that they can access, and one that they cannot."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

import tureen
from tests.class_archive import java_options

ROWS = 20_000
START = datetime(2026, 1, 1, tzinfo=UTC)


def main(seen: Path, unseen: Path) -> None:
    """Push to both pots; print the answer of the first and the error of the second."""
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    # As in `tests/conftest.py`, for the JVMs of the executors.
    builder.config("spark.executor.extraJavaOptions", java_options()).getOrCreate()
    rows = [{"k": number, "ts": START + timedelta(seconds=number)} for number in range(ROWS)]
    with tureen.open(seen) as soup:
        soup.create_stream("t", "k INT, ts TIMESTAMP", time="ts", clock="stream")
        query = soup.register("SELECT count(*) AS n, sum(k) AS total FROM t WHERE k % 2 = 0", materialize=True)
        soup.push("t", rows)
        soup.settle()
        print("answer", query.invoke().table.to_pylist(), flush=True)
    with tureen.open(unseen) as soup:
        soup.create_stream("t", "k INT, ts TIMESTAMP", time="ts", clock="stream")
        soup.push("t", rows)
        deadline = time.monotonic() + 240
        while "does not see" not in (soup.status()["error"] or "") and time.monotonic() < deadline:
            time.sleep(0.1)
        print("error", repr(soup.status()["error"]), flush=True)
        stream = soup.status()["streams"]["t"]
        print("rows", stream["rows"] - stream["pending_rows"], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    # Skip Spark's shutdown, which is not tested.
    os._exit(0)
