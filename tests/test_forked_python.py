"""Spark's Python processes are forked from one of the tests: streams, environment, end and exit code are theirs."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked_python import ADDRESS, forked_python

DAEMON = ["-m", "pyspark.daemon", "pyspark.worker"]
SPARK = {"PYTHON_WORKER_FACTORY_SECRET": "secret", "SPARK_REUSE_WORKER": "1"}


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    """The program that Spark runs in place of Python, while a server of its own forks."""
    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", ADDRESS)}
    with forked_python():
        while not Path(os.environ[ADDRESS]).exists():
            time.sleep(0.01)
        yield os.environ["PYSPARK_PYTHON"]
    os.environ.update({name: value for name, value in before.items() if value is not None})


def start(python: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **SPARK, **variables}
    return subprocess.Popen([python, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def forks() -> set[int]:
    """The server of these tests and its forks; sessions of other tests have forks of another server."""
    address, running = os.environ[ADDRESS].encode(), set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if address in command:
            running.add(int(directory.name))
    return running


def port_of(daemon: subprocess.Popen[bytes]) -> int:
    """The port that a daemon prints when it is ready."""
    assert daemon.stdout is not None
    (port,) = struct.unpack("!i", daemon.stdout.read(4))
    return int(port)


def exit_code_of(command: list[str]) -> int:
    """The exit code of a command without input."""
    environment = {**os.environ, **SPARK}
    return subprocess.run(command, input=b"", capture_output=True, env=environment, check=False, timeout=30).returncode


def test_daemon_is_forked_and_ends_with_its_input(python: str) -> None:
    before = forks()
    with start(python, *DAEMON) as daemon:
        assert 0 < port_of(daemon) < 1 << 16
        assert len(forks() - before) == 1
        assert daemon.stdin is not None
        daemon.stdin.close()
        assert daemon.wait(30) == exit_code_of([sys.executable, *DAEMON])


def test_ended_launcher_ends_its_fork(python: str) -> None:
    before = forks()
    with start(python, *DAEMON) as daemon:
        port_of(daemon)
        (fork,) = forks() - before
        daemon.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 30
        while Path(f"/proc/{fork}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not Path(f"/proc/{fork}").exists()


def test_failing_process_has_its_exit_code(python: str) -> None:
    # Without the variables that Spark sets, the source's process cannot connect.
    source = ["-m", "pyspark.sql.streaming.python_streaming_source_runner"]
    assert exit_code_of([python, *source]) == exit_code_of([sys.executable, *source]) != 0


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["-c", "import os; print(os.getppid())"], {}),
        (["-m", "platform"], {}),
        (DAEMON, {ADDRESS: "/nowhere"}),
        (DAEMON, {"TUREEN_DISABLE": "bell"}),
    ],
)
def test_other_processes_are_started(python: str, arguments: list[str], variables: dict[str, str]) -> None:
    before = forks()
    with start(python, *arguments, **variables) as process:
        assert process.stdout is not None
        assert process.stdout.read(4)
        assert forks() == before
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
