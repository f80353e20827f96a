"""An archive of the Java classes that Spark loads: with it, a JVM of the tests starts in half the processor time.

Run as `python -m tests.class_archive` before the tests. Without the archive, or with one of another Java or another
Spark, the JVM loads the classes from Spark's jars.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

import tureen
from tests.spark_home import spark_home
from tureen.pipeline.session import spark_session, stop_session

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

# The JVMs of tests are short-lived: the second compiler would take more time than its code saves, and so would threads
# that collect garbage beside those of the tests.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# The JVM prints why it does not use an archive.
_NO_LOG = "-Xlog:disable"


def java_options() -> str:
    """The options of the JVMs of tests; the archive need not exist."""
    return f"{_QUICK_START} -XX:SharedArchiveFile={ARCHIVE} {_NO_LOG}"


def write_archive() -> None:
    """Use Spark as the tests do, and write the archive when its JVM ends."""
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_QUICK_START} -XX:ArchiveClassesAtExit={ARCHIVE} {_NO_LOG}"
    ARCHIVE.unlink(missing_ok=True)
    # The archive has the paths of the jars.
    os.environ["SPARK_HOME"] = spark_home()
    with tempfile.TemporaryDirectory() as root, tureen.open(Path(root) / "pot", master="local[2]") as soup:
        soup.create_stream("s", "id BIGINT, ts TIMESTAMP", time="ts")
        soup.register("SELECT count(*) AS n FROM s WHERE id > 1", materialize=True)
        soup.push("s", [{"id": number, "ts": f"2026-01-01T00:00:0{number}Z"} for number in range(4)])
        soup.settle()
        session = spark_session("local[2]")
        session.createDataFrame(pa.table({"a": [1, 2], "b": ["x", None]})).createOrReplaceTempView("t")
        session.sql("SELECT b, count(*), sum(a) FROM t WHERE a > 0 GROUP BY b ORDER BY b").toArrow()
    assert SparkContext._gateway is not None
    java = SparkContext._gateway.proc
    stop_session()
    # The JVM ends, and writes the archive, at the end of its input.
    java.stdin.close()
    java.wait()


if __name__ == "__main__":
    write_archive()
