"""Kills on real Spark: a task's worker, the committing process, the JVM, the whole process; a lost checkpoint."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tureen


@pytest.fixture(scope="module")
def soup(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tureen.Soup]:
    assert spark
    with tureen.open(tmp_path_factory.mktemp("kill") / "pot", mode="write") as opened:
        yield opened


@pytest.mark.parametrize(
    "point", ["sink.task", "run.after_write", "sink.before_commit", "sink.in_commit", "sink.after_commit"]
)
def test_killed_workers_and_commits_neither_lose_nor_duplicate_rows(
    soup: tureen.Soup, crash_dir: Path, point: str
) -> None:
    name = point.replace(".", "_")
    soup.create_stream(name, "a INT")
    query = soup.register(f"SELECT a FROM {name}")
    soup.push(name, [{"a": 0}])
    soup.settle()
    (crash_dir / point).touch()
    soup.push(name, [{"a": 1}, {"a": 2}])
    assert query.invoke().table.to_pydict() == {"a": [0, 1, 2]}
    soup.settle()
    assert not (crash_dir / point).exists()
    assert soup.status()["streams"][name]["pending_rows"] == 0
    assert query.invoke().table.to_pydict() == {"a": [0, 1, 2]}
    soup.push(name, [{"a": 3}])
    soup.settle()
    assert query.invoke().table.to_pydict() == {"a": [0, 1, 2, 3]}


PUSHER = """
import sys, tureen
soup = tureen.open(sys.argv[1], master="local[2]")
if not soup.streams():
    soup.create_stream("s", "id BIGINT")
    print("registered", soup.register("SELECT id FROM s", name="all").id, flush=True)
changes = soup.query("all").changes()
for number in range(int(sys.argv[2]), 1_000_000):
    soup.push("s", [{"id": number}], key=str(number))
    print("pushed", number, flush=True)
    change = next(changes)
    print("saw", change.row["id"], change.position, flush=True)
    if number % 20 == 0:
        soup.settle()
        print("in", number, flush=True)
"""


def children(pid: int) -> list[int]:
    output = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in output.stdout.split()]


def test_kills_during_pushes(tmp_path: Path, spark: SparkSession) -> None:
    """First the JVM is killed, and the process starts a new one; then the process; then the checkpoint is deleted."""
    assert spark
    pot = tmp_path / "pot"
    acknowledged: list[int] = []
    seen: list[list[str]] = []
    killed: list[str] = []
    command = [sys.executable, "-c", PUSHER, str(pot), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            kind, _, rest = line.partition(" ")
            if kind == "pushed":
                acknowledged.append(int(rest))
            if kind == "saw":
                seen.append(rest.split())
            if line == "in 20\n":
                (java,) = children(process.pid)
                os.kill(java, signal.SIGKILL)
                killed.append("the JVM")
            if line == "in 60\n":
                process.kill()
                killed.append("the process")
                break
        remaining = process.stdout.readlines()
        acknowledged += [int(line.split()[1]) for line in remaining if line.startswith("pushed")]
        seen += [line.split()[1:] for line in remaining if line.startswith("saw")]
    shutil.rmtree(pot / "checkpoints")
    assert killed == ["the JVM", "the process"], "the process did not survive the kill of its JVM"
    with tureen.open(pot) as soup:
        soup.push("s", [{"id": -1}])
        at_once = [row["id"] for row in soup.query("all").invoke()]
        resumed = [change.row["id"] for change in soup.query("all").changes(since=seen[-1][1], timeout=0)]
        soup.settle()
        ids = [row["id"] for row in soup.query("all").invoke()]
        assert ids == at_once
        assert [int(number) for number, _ in seen] + resumed == ids
        assert [change.row["id"] for change in soup.query("all").changes(since=seen[0][1], timeout=0)] == ids[1:]
        assert len(ids) == len(set(ids))
        assert set(ids) >= {*acknowledged, -1}
        assert len(ids) <= len(acknowledged) + 2
        again = soup.push("s", [{"id": acknowledged[-1]}], key=str(acknowledged[-1]))
        assert again.added == 0
        soup.settle()
        assert len(soup.query("all").invoke()) == len(ids)
