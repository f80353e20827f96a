"""Standing queries in Flink: one job with a filter and a sink for each, over files.

Run by the interpreter of an environment that has `apache-flink` (see `benchmarks/peers_flink.py`). Reads a JSON object
from standard input (see `main`), and prints one JSON object a line as it goes.
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
    """A cluster of two cores in this process, patient with what a job of many filters takes to start."""
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
    """Make the files of a folder a table."""
    options = f"'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv'"
    flink.execute_sql(f"CREATE TABLE {name} ({COLUMNS}) WITH ({options})")


def counts(folder: str, wanted: list[str]) -> list[int]:
    """How many rows of the files each condition holds for."""
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(configuration()).build()
    flink = TableEnvironment.create(settings)
    add_source(flink, "r", folder)
    columns = ", ".join(f"COUNT(*) FILTER (WHERE {where})" for where in wanted)
    (row,) = flink.execute_sql(f"SELECT {columns} FROM r").collect()
    return [int(one) for one in row]


def seconds(folder: str, wanted: list[str]) -> tuple[float, float]:
    """How long planning took, and the job itself, with a filter and a sink for each condition."""
    flink = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(configuration()))
    add_source(flink, "files", folder)
    # A filter that is pushed into the files makes them another source, and each query would read them for itself. By
    # way of a stream they are read once for all.
    flink.create_temporary_view("r", flink.to_data_stream(flink.from_path("files")))
    began = time.perf_counter()
    together = flink.create_statement_set()
    for number, where in enumerate(wanted):
        # A sink of its own lets Flink chain all filters to the source, without a queue between them.
        flink.execute_sql(f"CREATE TABLE sink{number} ({COLUMNS}) WITH ('connector' = 'blackhole')")
        together.add_insert_sql(f"INSERT INTO sink{number} SELECT * FROM r WHERE {where}")
    result = together.execute()
    say(planned=time.perf_counter() - began)
    result.wait()
    client = result.get_job_client()
    assert client is not None
    running = client.get_job_execution_result().result().get_net_runtime() / 1000
    return time.perf_counter() - began, running


def say(**found: object) -> None:
    """Print what is known so far."""
    print(json.dumps(found), flush=True)


def main() -> None:
    """Take `{"few": folder, "checked": [conditions], "files": [folders], "wanted": [conditions]}`."""
    asked = json.load(sys.stdin)
    say(version=version("apache-flink"))
    say(counts=counts(asked["few"], asked["checked"]))
    for folder in asked["files"]:
        whole, running = seconds(folder, asked["wanted"])
        say(whole=whole, running=running)


if __name__ == "__main__":
    main()
