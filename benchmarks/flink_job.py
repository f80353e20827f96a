"""Standing queries in Flink: one job with a filter and a sink for each query, or a join of streams, over files.

Runs in a virtual environment with `apache-flink` (see `benchmarks/peers_flink.py`). Reads a JSON object from standard
input (see `main`), and prints results as JSON objects, one per line.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

from pyflink.common import Configuration, RowKind
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment, TableResult

COLUMNS = "a INT, b INT, c INT, d INT"


def configuration() -> Configuration:
    """A cluster of two cores in this process, with timeouts long enough for a job of many filters."""
    settings = Configuration()
    for key, value in {
        "parallelism.default": "2",
        "rest.bind-address": "127.0.0.1",
        "heartbeat.timeout": "300000",
        "taskmanager.memory.network.max": "512m",
        "taskmanager.memory.managed.size": "64m",
    }.items():
        settings.set_string(key, value)
    return settings


def add_source(flink: TableEnvironment, name: str, folder: str, columns: str = COLUMNS) -> None:
    """Create a table over the files of a folder."""
    options = f"'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv'"
    flink.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")


def counts(folder: str, conditions: list[str]) -> list[int]:
    """The number of rows that satisfy each condition."""
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(configuration()).build()
    flink = TableEnvironment.create(settings)
    add_source(flink, "r", folder)
    columns = ", ".join(f"COUNT(*) FILTER (WHERE {where})" for where in conditions)
    (row,) = flink.execute_sql(f"SELECT {columns} FROM r").collect()
    return [int(count) for count in row]


def seconds(folder: str, conditions: list[str]) -> tuple[float, float]:
    """The seconds of planning and running a job with a filter and a sink for each condition, and of running alone."""
    flink = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(configuration()))
    add_source(flink, "files", folder)
    # Flink would push each filter into the files and read them once per query; a stream is read once for all queries.
    flink.create_temporary_view("r", flink.to_data_stream(flink.from_path("files")))
    began = time.perf_counter()
    statements = flink.create_statement_set()
    for number, where in enumerate(conditions):
        # With a sink per query, Flink chains all filters to the source, without a queue between them.
        flink.execute_sql(f"CREATE TABLE sink{number} ({COLUMNS}) WITH ('connector' = 'blackhole')")
        statements.add_insert_sql(f"INSERT INTO sink{number} SELECT * FROM r WHERE {where}")
    result = statements.execute()
    report(planned=time.perf_counter() - began)
    running = running_seconds(result)
    return time.perf_counter() - began, running


def running_seconds(result: TableResult) -> float:
    """The seconds that a job runs, without its planning."""
    result.wait()
    client = result.get_job_client()
    assert client is not None
    return float(client.get_job_execution_result().result().get_net_runtime() / 1000)


def join_sums(folder: str, streams: dict[str, str], sql: str, checked: str) -> list[float]:
    """The sums of a join's result, by a streaming job whose last update has them."""
    flink = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(configuration()))
    add_inputs(flink, folder, streams)
    last: list[float] = []
    with flink.execute_sql(f"SELECT {checked} FROM ({sql}) joined").collect() as rows:
        for row in rows:
            if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                last = [float(value) for value in row]
    return last


def join_seconds(folder: str, streams: dict[str, str], sql: str, checkpoints: str | None = None) -> float:
    """The seconds that a join of streams runs; its state is in memory, and its sink drops the rows."""
    settings = configuration()
    if checkpoints is not None:
        settings.set_string("execution.checkpointing.interval", "250ms")
        settings.set_string("execution.checkpointing.storage", "filesystem")
        settings.set_string("execution.checkpointing.dir", f"file://{checkpoints}")
    flink = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(settings))
    add_inputs(flink, folder, streams)
    flink.execute_sql("CREATE TABLE sink (k BIGINT, v DOUBLE, w DOUBLE) WITH ('connector' = 'blackhole')")
    return running_seconds(flink.execute_sql(f"INSERT INTO sink {sql}"))


def state_bytes(folder: str, streams: dict[str, str], sql: str, checkpoints: str) -> int:
    """The size of the largest checkpoint while a join runs."""
    largest, ended = 0, threading.Event()

    def watch() -> None:
        nonlocal largest
        while not ended.wait(0.05):
            for checkpoint in Path(checkpoints).glob("*/chk-*"):
                with contextlib.suppress(OSError):
                    largest = max(largest, sum(file.stat().st_size for file in checkpoint.iterdir()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        join_seconds(folder, streams, sql, checkpoints)
    finally:
        ended.set()
        watcher.join()
    return largest


def add_inputs(flink: TableEnvironment, folder: str, streams: dict[str, str]) -> None:
    """Create the tables of a join over their files."""
    for name, columns in streams.items():
        add_source(flink, name, f"{folder}/{name}", columns)


def report(**results: object) -> None:
    """Print results as a line of JSON."""
    print(json.dumps(results), flush=True)


def main() -> None:
    """Read `{"few": folder, "checked": [conditions], "files": [folders], "conditions": [conditions]}`.

    For a join `{"few": folder, "joins": [folders], "streams": {name: columns}, "sql": …, "checked": sums,
    "checkpoints": folder}`, with the files of all streams in each folder.
    """
    request = json.load(sys.stdin)
    report(version=version("apache-flink"))
    if "joins" in request:
        streams, sql = request["streams"], request["sql"]
        report(sums=join_sums(request["few"], streams, sql, request["checked"]))
        for folder in request["joins"]:
            report(running=join_seconds(folder, streams, sql))
        report(state=state_bytes(request["joins"][-1], streams, sql, request["checkpoints"]))
        return
    report(counts=counts(request["few"], request["checked"]))
    for folder in request["files"]:
        whole, running = seconds(folder, request["conditions"])
        report(whole=whole, running=running)


if __name__ == "__main__":
    main()
