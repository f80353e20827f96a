"""Spark's JVM: its standard error is a pipe, whose lines go to the logger "tureen.spark".

Java and Spark print a few meaningless lines at every start, and Spark's Python workers print stack traces when they are
stopped. Neither belongs in a log that programs read.
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

_STARTUP_LINES = (
    "WARNING: Using incubator modules:",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Setting Spark log level to ",
)

LINES_KEPT = 20
"""The number of last lines that are kept, for the error of a JVM that does not start."""

users: WeakSet[object] = WeakSet()
"""The current users of Spark. Without users its processes are stopping, and their output is not logged as warnings."""


class StderrReader(threading.Thread):
    """Logs the lines that a JVM prints, until it ends."""

    def __init__(self, source: IO[str]) -> None:
        """Read from the read end of a pipe."""
        super().__init__(name="tureen-spark-stderr", daemon=True)
        self._source = source
        self.last: list[str] = []

    def run(self) -> None:
        """Log each line."""
        with self._source:
            for line in self._source:
                self._log(line.rstrip())

    def _log(self, line: str) -> None:
        if line and not line.startswith(_STARTUP_LINES):
            self.last = [*self.last[1 - LINES_KEPT :], line]
            log.log(logging.WARNING if users else logging.DEBUG, "%s", line)


@dataclass
class _Launched:
    """The JVM that this process launched last."""

    reader: StderrReader | None = None
    process: Popen[bytes] | None = None


_launched = _Launched()


def launch(config: dict[str, str]) -> None:
    """Start a JVM with these settings for pyspark, unless it has one."""
    if SparkContext._gateway is not None:
        return
    read_end, write_end = os.pipe()
    _launched.reader, _launched.process = StderrReader(os.fdopen(read_end, errors="replace")), None
    _launched.reader.start()
    try:
        conf = SparkConf(loadDefaults=False).setAll(list(config.items()))
        gateway: Any = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
    finally:
        os.close(write_end)
    _launched.process = gateway.proc
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm


def last_lines() -> str:
    """The last lines that the JVM printed."""
    return "" if _launched.reader is None else "\n".join(_launched.reader.last)


def process_id() -> int | None:
    """The process id of the JVM that was launched here, or None: pyspark may use another one."""
    return None if _launched.process is None else _launched.process.pid


def kill() -> None:
    """Kill the JVM that was launched here."""
    if _launched.process is not None:
        _launched.process.kill()


def discard() -> None:
    """Kill the JVM that was launched here, and let pyspark start another one."""
    if _launched.process is not None:
        kill()
        forget()


def forget() -> None:
    """Let pyspark start a new JVM after the old one died; pyspark has no API for that."""
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
