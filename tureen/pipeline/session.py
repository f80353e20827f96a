"""The Spark session of the process: reused or started, tuned for small batches.

All pots of a process share one session, which lasts until the process ends, because starting Spark takes seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tureen.errors import EngineFailed
from tureen.pipeline import gateway
from tureen.pipeline.spark_home import home_without_zip

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()

_CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # The largest value turns the limit off. With a limit, Spark adds up the sizes of all columns of the batch for each
    # row, which takes as long as reading and writing the row. Instead, a batch has few rows.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.python.daemon.module": "tureen.pipeline.daemon",
    # Plain renames instead of Hadoop's FileContext: half the cost of a small batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.minBatchesToRetain": "4",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}",
    "spark.log.level": "FATAL",
}

_starting = threading.Lock()
_ending = threading.Event()
"""Set while the process's session is being stopped, to cancel one that is still starting."""


_JAVA = "spark.driver.extraJavaOptions"


def spark_session(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The process's session, or a new one with that master and these settings.

    A running session must have the settings already: Spark reads most of them only when it starts.
    """
    requested = settings or {}
    with _starting:
        # Not `getActiveSession`, which calls the JVM, which may have died.
        active = SparkSession._instantiatedSession
        if active is not None and alive(active):
            _check_settings(active, requested)
            _use_this_python(active)
            return active
        if active is not None:
            gateway.forget()
        _check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        config = {**_CONFIG, **requested, "spark.master": master, "spark.app.name": "tureen"}
        if _JAVA in requested:
            config[_JAVA] = f"{_CONFIG[_JAVA]} {requested[_JAVA]}"
        builder = SparkSession.builder
        for key, value in config.items():
            builder = builder.config(key, value)
        try:
            with home_without_zip(config):
                gateway.launch(config)
            if _ending.is_set():
                raise EngineFailed("Spark was stopped while it started")
            return builder.getOrCreate()
        except Exception as error:
            gateway.discard()
            detail = "\n".join(text for text in (str(error), gateway.last_lines()) if text)
            raise EngineFailed("Spark could not be started", detail=detail) from error


def _use_this_python(session: SparkSession) -> None:
    """Let a session that others started run its workers with this Python, unless another one is configured.

    By default it runs the `python3` of the PATH, which may be another one, without Tureen.
    """
    configured = os.environ.get("PYSPARK_PYTHON") or session.conf.get("spark.pyspark.python", None)
    if not configured:
        session.sparkContext.pythonExec = sys.executable


def _check_settings(session: SparkSession, requested: Mapping[str, str]) -> None:
    """Raise if the running session has other settings."""
    for key, value in requested.items():
        current = session.conf.get(key, None)
        if current != value and not (key == _JAVA and value in (current or "")):
            raise EngineFailed(
                f"Spark is already running in this process, without {key} = {value}",
                detail=f"it is {'not set' if current is None else repr(current)}",
                hint="pass the settings when the first pot of the process is opened, or to the session itself",
            )


def stop_session() -> None:
    """Stop the process's session, if it has one, before the process exits."""
    _ending.set()
    try:
        while not _starting.acquire(timeout=0.1):
            # A session that is still starting is killed, not waited for.
            gateway.kill()
        try:
            active = SparkSession._instantiatedSession
            if active is not None and alive(active):
                active.stop()
        finally:
            _starting.release()
    finally:
        _ending.clear()


def alive(session: SparkSession) -> bool:
    """Whether the session's JVM responds and its context is not stopped."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def make_active(session: SparkSession) -> None:
    """Make the session active in this thread: Spark resolves data sources in the thread's active session."""
    classes = SparkSession._get_j_spark_session_class(session._jvm)
    classes.setActiveSession(session._jsparkSession)


def cores(session: SparkSession) -> int:
    """The number of tasks that run concurrently."""
    return int(session.sparkContext.defaultParallelism)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or (home and not Path(java).exists()):
        raise EngineFailed("no Java found", hint="install Java 17 or later, or set JAVA_HOME")
    try:
        subprocess.run([java, "-version"], capture_output=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineFailed("Java does not run", detail=str(error), hint="set JAVA_HOME to Java 17 or later") from error
