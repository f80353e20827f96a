"""Spark's JVM: started with its standard error in a pipe, whose lines go to the logger "tureen.spark".

Java and Spark print a few lines at every start that say nothing, and Spark's Python workers print stacks when they are
stopped. Neither belongs among the lines of a log that programs read.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from subprocess import Popen
from typing import IO, Any
from weakref import WeakSet

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

log = logging.getLogger("tureen.spark")

_AT_EVERY_START = (
    "WARNING: Using incubator modules:",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Setting Spark log level to ",
)

LINES_KEPT = 20
"""So many of the last lines are kept: those of a JVM that does not start say why."""

users: WeakSet[object] = WeakSet()
"""Whoever needs Spark at the moment. Without any, what its processes print is about their end, and no warning."""


class StderrReader(threading.Thread):
    """Logs the lines that a JVM prints, until it ends."""

    def __init__(self, source: IO[str]) -> None:
        """Read from the near end of a pipe."""
        super().__init__(name="tureen-spark-stderr", daemon=True)
        self._source = source
        self.last: list[str] = []

    def run(self) -> None:
        """Log each line."""
        with self._source:
            for line in self._source:
                self._log(line.rstrip())

    def _log(self, line: str) -> None:
        if line and not line.startswith(_AT_EVERY_START):
            self.last = [*self.last[1 - LINES_KEPT :], line]
            log.log(logging.WARNING if users else logging.DEBUG, "%s", line)


@dataclass
class _Launched:
    """The JVM that this process launched last."""

    reader: StderrReader | None = None
    process: Popen[bytes] | None = None


_launched = _Launched()


def launch(config: dict[str, str]) -> None:
    """Start a JVM with these settings and let pyspark use it, unless it has one."""
    if SparkContext._gateway is not None:
        return
    near, far = os.pipe()
    _launched.reader, _launched.process = StderrReader(os.fdopen(near, errors="replace")), None
    _launched.reader.start()
    try:
        conf = SparkConf(loadDefaults=False).setAll(list(config.items()))
        gateway: Any = launch_gateway(conf, {"stderr": far})  # type: ignore[no-untyped-call]
    finally:
        os.close(far)
    _launched.process = gateway.proc
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def last_lines() -> str:
    """What the JVM printed last."""
    return "" if _launched.reader is None else "\n".join(_launched.reader.last)


def process_id() -> int | None:
    """The JVM that was launched here, or None: pyspark may use one that others started."""
    return None if _launched.process is None else _launched.process.pid


def kill() -> None:
    """End the JVM that was launched here, without waiting for what it does."""
    if _launched.process is not None:
        _launched.process.kill()


def discard() -> None:
    """End the JVM that was launched here, and let pyspark start another one."""
    if _launched.process is not None:
        kill()
        forget()


def forget() -> None:
    """Let pyspark start a new JVM after the old one died; it has no call for that."""
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
