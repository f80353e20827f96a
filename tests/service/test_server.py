"""A server in a process of its own: start, stop, kill under load, and restart."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.disk import small_disk

STREAM = {"name": "s", "schema": "id BIGINT"}
NOT_NICE = ("--nice", "0")
"""Where the priority of Spark does not matter: with a lower one, it would wait for the tests in other processes."""


class Process:
    """A server in a process of its own."""

    def __init__(self, pot: Path, token: str | None = None, *flags: str) -> None:
        command = [sys.executable, "-m", "tureen.service", "--pot", str(pot), "--port", "0", "--master", "local[2]"]
        self.popen = subprocess.Popen(
            [*command, "--log", "json", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.log: list[str] = []
        self._log_reader = threading.Thread(target=self._read_log)
        self._log_reader.start()
        assert self.popen.stdout is not None
        self.url = self.popen.stdout.readline().rpartition(" ")[2].strip()
        if token is None:
            self.popen.stdout.readline()
            token = self.popen.stdout.readline().strip()
        self.token = token

    def _read_log(self) -> None:
        assert self.popen.stderr is not None
        self.log.extend(self.popen.stderr)

    def close(self) -> None:
        """Kill the process if it is alive, and close its pipes."""
        self.popen.kill()
        self._log_reader.join()
        # On exit, Popen closes the pipes.
        with self.popen:
            pass

    def client(self) -> httpx.Client:
        """A client with an admin token."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=300)

    def wait_until_ready(self) -> None:
        """Wait until Spark has started."""
        with self.client() as http:
            for _ in range(600):
                if http.get("/healthz").json().get("pipeline") == "running":
                    return
                threading.Event().wait(0.2)
        raise AssertionError("the server did not become ready")

    def wait_until_taken(self) -> None:
        """Wait until all pushed rows are in runs."""
        with self.client() as http:
            for _ in range(1200):
                streams = http.get("/v1/status").json()["streams"].values()
                if not any(stream["pending_rows"] for stream in streams):
                    return
                threading.Event().wait(0.2)
        raise AssertionError("pushed rows are still pending")

    def wait_for_log(self, text: str) -> None:
        """Wait for a log line that contains a text."""
        for _ in range(600):
            if any(text in line for line in list(self.log)):
                return
            threading.Event().wait(0.2)
        raise AssertionError(f"no {text!r} in {self.log}")


@contextmanager
def server(pot: Path, token: str | None = None, *flags: str) -> Iterator[Process]:
    """A server process, killed at the end of the context."""
    process = Process(pot, token, *flags)
    try:
        yield process
    finally:
        process.close()


def _push(url: str, token: str, first: int, acknowledged: list[int], spark_runs: threading.Event) -> None:
    """Push one row at a time until the server is gone; collect the acknowledged numbers."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
        for number in itertools.count(first):
            try:
                response = http.post(
                    "/v1/streams/s/rows", json=[{"id": number}], headers={"Idempotency-Key": str(number)}
                )
            except httpx.HTTPError:
                return
            if response.status_code == 202:
                acknowledged.append(number)
            # About a hundred pushes per second in all, ten while Spark starts, so that it gets its share of a small
            # machine.
            threading.Event().wait(0.03 if spark_runs.is_set() else 0.3)


def test_restart_after_kill_under_load(tmp_path: Path) -> None:
    """Every acknowledged row is there exactly once, every handle is answered, and SIGTERM stops the server cleanly.

    The server prints when it is ready and when Spark has started, and logs JSON only.
    """
    pot, spark_runs = tmp_path / "pot", threading.Event()
    handles: dict[str, int] = {}
    acknowledged: list[list[int]] = [[], [], []]
    with server(pot, None, *NOT_NICE) as first:
        with first.client() as http:
            assert http.post("/v1/streams", json=STREAM).status_code == 201
            pushers = [
                threading.Thread(target=_push, args=(first.url, first.token, index * 1_000_000, numbers, spark_runs))
                for index, numbers in enumerate(acknowledged)
            ]
            for pusher in pushers:
                pusher.start()
            for number in range(30):
                body = {"sql": f"SELECT id FROM s WHERE id % 30 = {number}"}
                handles[http.post("/v1/queries", json=body).json()["id"]] = number
            # Kill the server when part of the rows is committed and part is not.
            assert http.post("/v1/streams/s/rows", json=[{"id": -1}]).status_code == 202
            for _ in range(1200):
                status = http.get("/v1/status").json()["streams"]["s"]
                if status["rows"] > status["pending_rows"]:
                    break
                threading.Event().wait(0.2)
            assert status["rows"] > status["pending_rows"], "Spark takes no rows"
            spark_runs.set()
            enough = [len(numbers) + 20 for numbers in acknowledged]
            while any(len(numbers) < count for numbers, count in zip(acknowledged, enough, strict=True)):
                threading.Event().wait(0.05)
        os.kill(first.popen.pid, signal.SIGKILL)
        for pusher in pushers:
            pusher.join()
    expected = {number for numbers in acknowledged for number in numbers}
    with server(pot, first.token) as second, second.client() as http:
        # Repeating a push with its key adds nothing.
        for numbers in acknowledged:
            headers = {"Idempotency-Key": str(numbers[-1])}
            assert http.post("/v1/streams/s/rows", json=[{"id": numbers[-1]}], headers=headers).status_code == 202
        assert http.post("/v1/streams/s/rows", json=[{"id": -2}]).status_code == 202
        _check_answers(http, handles, expected)
        second.wait_until_taken()
        _check_answers(http, handles, expected)
        second.wait_until_ready()
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
        lowered = min(niceness + 10, 19)
        for _ in range(600):
            if _niceness_of_java(second.popen.pid) == lowered:
                break
            threading.Event().wait(0.2)
        assert _niceness_of_java(second.popen.pid) == lowered, "the priority of Spark was not lowered"
        assert os.getpriority(os.PRIO_PROCESS, second.popen.pid) == niceness
        assert second.popen.stdout is not None
        assert second.popen.stdout.readline() == "tureen: ready; Spark is starting\n"
        assert second.popen.stdout.readline().startswith("tureen: Spark started after ")
        _assert_clean_stop(second)
    records = [json.loads(line) for line in second.log]
    assert records[-1]["message"] == "stopped"
    assert {record["level"] for record in records} == {"info"}


def _check_answers(http: httpx.Client, handles: dict[str, int], expected: set[int]) -> None:
    """Every handle is answered, with every acknowledged row once."""
    answered: list[int] = []
    for handle, remainder in handles.items():
        response = http.get(f"/v1/queries/{handle}/result")
        assert response.status_code == 200, response.text
        ids = [row["id"] for row in response.json()["rows"]]
        assert {number % 30 for number in ids if number >= 0} <= {remainder}
        answered += ids
    assert len(answered) == len(set(answered)), "duplicate row"
    assert {number for number in answered if number >= 0} >= expected, "an acknowledged row is missing"


def _niceness_of_java(server: int) -> int:
    """The niceness of the Java process that a server started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().rpartition(") ")
            if name.endswith("java") and rest.split()[1] == str(server):
                return os.getpriority(os.PRIO_PROCESS, int(stat.parent.name))
    raise AssertionError("no Java process")


def _assert_clean_stop(process: Process) -> None:
    """Assert that SIGTERM ends followers without an error, and that the exit code is 0."""
    with process.client() as http, http.stream("GET", "/v1/changes") as follower:
        lines = follower.iter_lines()
        assert next(lines).startswith("id: ")
        process.popen.send_signal(signal.SIGTERM)
        stopped_at = time.monotonic()
        assert [line for line in lines if line.startswith("event: error")] == []
    assert process.popen.wait(timeout=60) == 0
    assert time.monotonic() - stopped_at < 60
    assert process.token not in "".join(process.log)
    assert any('"message":"stopped"' in line for line in process.log)


def test_ctrl_c_stops_while_spark_starts(tmp_path: Path) -> None:
    with server(tmp_path / "pot") as process:
        with process.client() as http:
            assert http.get("/healthz").json() == {"status": "ok", "pipeline": "starting"}
        process.popen.send_signal(signal.SIGINT)
        assert process.popen.wait(timeout=120) == 0
    records = [json.loads(line) for line in process.log]
    assert [record["message"] for record in records if record["logger"] != "tureen.request"] == ["stopped"]


def test_full_disk_and_recovery_are_logged() -> None:
    with small_disk(8 << 20) as disk, server(disk / "pot", None, *NOT_NICE) as process, process.client() as http:
        assert http.post("/v1/streams", json=STREAM).status_code == 201
        process.wait_until_ready()
        assert http.post("/v1/streams/s/rows", json=[{"id": 1}]).status_code == 202
        process.wait_until_taken()
        # Enough space for the rows in the inbox, but not for the run as well.
        generator = random.Random(1)
        rows = [{"id": generator.randrange(1 << 60)} for _ in range(100_000)]
        _fill(disk / "filler", leave=8 * len(rows) * 3 // 2)
        assert http.post("/v1/streams/s/rows", json=rows).status_code == 202
        process.wait_for_log("reading pushed rows stopped; retrying in")
        (disk / "filler").unlink()
        process.wait_for_log("reading pushed rows resumed")
        process.wait_until_taken()


def _fill(path: Path, *, leave: int) -> None:
    """Fill the disk except for `leave` bytes."""
    with path.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(file.tell() - leave)


STARTS = """
import contextlib, io, json, sys
from tureen.service.__main__ import main
for line in sys.stdin:
    sys.argv[1:] = json.loads(line)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main()
    print(json.dumps([code, errors.getvalue()]))
"""
"""Starts a server for each line of flags, and prints its exit code and what it prints to standard error."""


def test_startup_errors_are_printed(tmp_path: Path) -> None:
    """An invalid setting, an unusable address, a locked pot: a message without a traceback, and a nonzero exit code."""
    (tmp_path / "pot").mkdir()
    (tmp_path / "pot" / "lease").touch()
    flags = (["--no-auth", "--host", "0.0.0.0"], ["--host", "192.0.2.1"], ["--port", "0"])
    lines = "".join(json.dumps(["--pot", str(tmp_path / "pot"), *each]) + "\n" for each in flags)
    with (tmp_path / "pot" / "lease").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # In one process, because importing all that a server needs takes seconds.
        command = [sys.executable, "-c", STARTS]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True)
    (invalid, _), (unusable, address), (locked, lease) = map(json.loads, done.stdout.splitlines())
    assert (invalid, unusable, locked) == (2, 1, 1)
    assert "cannot listen on 192.0.2.1:7707" in address
    assert "is being written by" in lease
    assert "Traceback" not in address + lease + done.stderr


def test_spark_startup_error_is_shown_to_authenticated_requests(tmp_path: Path) -> None:
    with server(tmp_path / "pot", None, "--spark", "spark.driver.memory=nonsense") as process:
        with process.client() as http:
            while "could not be started" not in http.get("/healthz").text:
                threading.Event().wait(0.1)
            assert "could not be started" in http.get("/v1/status").json()["error"]
        for headers in ({}, {"Authorization": "Bearer tureen_wrong"}):
            response = httpx.get(f"{process.url}/healthz", headers=headers)
            error = response.json()["error"]
            assert (response.status_code, error["message"]) == (503, "not ready")
            assert error["detail"] == "the pipeline is not running; requests with a token see why"
