"""Standing queries in Flink: one job with a filter and a sink for each query, over files.

Runs in a virtual environment with `apache-flink` (see `benchmarks/peers_flink.py`). Reads a JSON object from standard
input (see `main`), and prints results as JSON objects, one per line.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment

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


def add_source(flink: TableEnvironment, name: str, folder: str) -> None:
    """Create a table over the files of a folder."""
    options = f"'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv'"
    flink.execute_sql(f"CREATE TABLE {name} ({COLUMNS}) WITH ({options})")


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
    result.wait()
    client = result.get_job_client()
    assert client is not None
    running = client.get_job_execution_result().result().get_net_runtime() / 1000
    return time.perf_counter() - began, running


def report(**results: object) -> None:
    """Print results as a line of JSON."""
    print(json.dumps(results), flush=True)


def main() -> None:
    """Read `{"few": folder, "checked": [conditions], "files": [folders], "conditions": [conditions]}`."""
    request = json.load(sys.stdin)
    report(version=version("apache-flink"))
    report(counts=counts(request["few"], request["checked"]))
    for folder in request["files"]:
        whole, running = seconds(folder, request["conditions"])
        report(whole=whole, running=running)


if __name__ == "__main__":
    main()
