"""A server as a process: started, stopped, killed under load, and started again."""

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


class Process:
    """A server in a process of its own."""

    def __init__(self, pot: Path, token: str | None = None, *more: str) -> None:
        command = [sys.executable, "-m", "tureen.service", "--pot", str(pot), "--port", "0", "--master", "local[2]"]
        self.popen = subprocess.Popen(
            [*command, "--log", "json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.log: list[str] = []
        self._reading = threading.Thread(target=self._read_log)
        self._reading.start()
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
        """Kill it if it lives, and let go of its pipes."""
        self.popen.kill()
        self._reading.join()
        # Its pipes are closed with it.
        with self.popen:
            pass

    def client(self) -> httpx.Client:
        """An admin's client."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=300)

    def ready(self) -> None:
        """Wait until it takes rows and answers."""
        with self.client() as http:
            for _ in range(600):
                if http.get("/healthz").status_code == 200:
                    return
                threading.Event().wait(0.2)
        raise AssertionError("it never was ready")

    def until_logged(self, part: str) -> None:
        """Wait for a log line with that text."""
        for _ in range(600):
            if any(part in line for line in list(self.log)):
                return
            threading.Event().wait(0.2)
        raise AssertionError(f"no {part!r} in {self.log}")


@contextmanager
def server(pot: Path, token: str | None = None, *more: str) -> Iterator[Process]:
    """A server that is stopped in the end, whatever happened."""
    found = Process(pot, token, *more)
    try:
        yield found
    finally:
        found.close()


def _push(url: str, token: str, first: int, acknowledged: list[int]) -> None:
    """Push rows one after another until the server is gone; keep which were acknowledged."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
        for number in itertools.count(first):
            try:
                answer = http.post(
                    "/v1/streams/s/rows", json=[{"id": number}], headers={"Idempotency-Key": str(number)}
                )
            except httpx.HTTPError:
                return
            if answer.status_code == 202:
                acknowledged.append(number)
            # A few hundred a second of all together: Spark must have its share of a small machine too.
            threading.Event().wait(0.01)


def test_killed_under_load_and_started_again(tmp_path: Path) -> None:
    """Every acknowledged row is there once, every handle answers; then it is stopped, and ends well."""
    pot = tmp_path / "pot"
    handles: dict[str, int] = {}
    acknowledged: list[list[int]] = [[], [], []]
    with server(pot) as first:
        with first.client() as http:
            assert http.post("/v1/streams", json=STREAM).status_code == 201
            pushers = [
                threading.Thread(target=_push, args=(first.url, first.token, place * 1_000_000, some))
                for place, some in enumerate(acknowledged)
            ]
            for pusher in pushers:
                pusher.start()
            for number in range(30):
                body = {"sql": f"SELECT id FROM s WHERE id % 30 = {number}"}
                handles[http.post("/v1/queries", json=body).json()["id"]] = number
            # Some of it has come through Spark, and much has not.
            at = http.post("/v1/streams/s/rows", json=[{"id": -1}]).json()["position"]
            assert http.get("/v1/wait", params={"position": at, "timeout": 240}).status_code == 200
            while min(len(some) for some in acknowledged) < 20:
                threading.Event().wait(0.05)
        os.kill(first.popen.pid, signal.SIGKILL)
        for pusher in pushers:
            pusher.join()
    wanted = {number for some in acknowledged for number in some}
    with server(pot, first.token) as second, second.client() as http:
        # What was being sent when it died may be sent again: the key knows whether it is there.
        for some in acknowledged:
            again = {"Idempotency-Key": str(some[-1])}
            assert http.post("/v1/streams/s/rows", json=[{"id": some[-1]}], headers=again).status_code == 202
        at = http.post("/v1/streams/s/rows", json=[{"id": -2}]).json()["position"]
        assert http.get("/v1/wait", params={"position": at, "timeout": 240}).status_code == 200
        found: list[int] = []
        for handle, number in handles.items():
            answer = http.get(f"/v1/queries/{handle}/result")
            assert answer.status_code == 200, answer.text
            rows = [row["id"] for row in answer.json()["rows"]]
            assert {abs(row) % 30 for row in rows if row >= 0} <= {number}
            found += rows
        assert len(found) == len(set(found)), "a row is there twice"
        assert {row for row in found if row >= 0} >= wanted, "an acknowledged row is missing"
        second.ready()
        for _ in range(600):
            if _niceness_of_java(second.popen.pid) == 10:
                break
            threading.Event().wait(0.2)
        assert _niceness_of_java(second.popen.pid) == 10, "Spark does not stand back"
        assert os.getpriority(os.PRIO_PROCESS, second.popen.pid) == 0
        _stops_well(second)


def _niceness_of_java(server: int) -> int:
    """Of the Java that a server started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().rpartition(") ")
            if name.endswith("java") and rest.split()[1] == str(server):
                return os.getpriority(os.PRIO_PROCESS, int(stat.parent.name))
    raise AssertionError("there is no Java")


def _stops_well(running: Process) -> None:
    """A stopped server lets followers go, answers what it has begun, and ends with 0."""
    with running.client() as http, http.stream("GET", "/v1/changes") as follower:
        lines = follower.iter_lines()
        assert next(lines).startswith("id: ")
        running.popen.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert [line for line in lines if line.startswith("event: error")] == []
    assert running.popen.wait(timeout=60) == 0
    assert time.monotonic() - began < 60
    assert running.token not in "".join(running.log)
    assert any('"message":"stopped"' in line for line in running.log)


def test_it_says_when_it_is_ready_and_logs_nothing_but_json(tmp_path: Path) -> None:
    with server(tmp_path / "pot") as running:
        running.ready()
        assert running.popen.stdout is not None
        assert running.popen.stdout.readline().startswith("tureen: ready after ")
        running.popen.send_signal(signal.SIGTERM)
        assert running.popen.wait(timeout=60) == 0
    messages = [json.loads(line)["message"] for line in running.log]
    assert messages[-1] == "stopped"
    assert {json.loads(line)["level"] for line in running.log} == {"info"}


def test_stopped_by_ctrl_c_while_spark_starts(tmp_path: Path) -> None:
    with server(tmp_path / "pot") as running:
        with running.client() as http:
            assert http.get("/healthz").json()["error"]["detail"] == "Spark is starting"
        running.popen.send_signal(signal.SIGINT)
        assert running.popen.wait(timeout=120) == 0
    told = [json.loads(line) for line in running.log]
    assert [line["message"] for line in told if line["logger"] != "tureen.request"] == ["stopped"]


def test_a_full_disk_is_in_the_log_and_so_is_that_it_goes_on() -> None:
    with small_disk(8 << 20) as disk, server(disk / "pot") as running, running.client() as http:
        assert http.post("/v1/streams", json=STREAM).status_code == 201
        running.ready()
        at = http.post("/v1/streams/s/rows", json=[{"id": 1}]).json()["position"]
        assert http.get("/v1/wait", params={"position": at, "timeout": 240}).status_code == 200
        # There is room for the rows in the inbox, and not once more for the run.
        chance = random.Random(1)
        rows = [{"id": chance.randrange(1 << 60)} for _ in range(100_000)]
        _fill(disk / "filler", leave=8 * len(rows) * 3 // 2)
        last = http.post("/v1/streams/s/rows", json=rows).json()["position"]
        running.until_logged("taking up pushed rows stopped; trying again in")
        (disk / "filler").unlink()
        running.until_logged("taking up pushed rows goes on")
        assert http.get("/v1/wait", params={"position": last, "timeout": 240}).status_code == 200


def _fill(path: Path, *, leave: int) -> None:
    """Write until so many bytes of the disk are left."""
    with path.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(file.tell() - leave)


def test_what_keeps_it_from_starting_is_said(tmp_path: Path) -> None:
    """A setting, an address or a pot that cannot be used: a clear text, and no 0."""

    def start(*flags: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "tureen.service", "--pot", str(tmp_path / "pot"), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr

    assert start("--no-auth", "--host", "0.0.0.0")[0] == 2
    code, said = start("--host", "192.0.2.1")
    assert (code, "cannot listen on 192.0.2.1:7707" in said, "Traceback" in said) == (1, True, False)
    (tmp_path / "pot").mkdir()
    (tmp_path / "pot" / "lease").touch()
    with (tmp_path / "pot" / "lease").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, said = start("--port", "0")
    assert (code, "is being written by" in said, "Traceback" in said) == (1, True, False)


def test_what_keeps_spark_from_starting_is_told_to_those_with_a_token(tmp_path: Path) -> None:
    with server(tmp_path / "pot", None, "--spark", "spark.driver.memory=nonsense") as process:
        with process.client() as http:
            while "could not be started" not in http.get("/healthz").text:
                threading.Event().wait(0.1)
            assert "could not be started" in http.get("/v1/status").json()["error"]
        for headers in ({}, {"Authorization": "Bearer tureen_wrong"}):
            answer = httpx.get(f"{process.url}/healthz", headers=headers)
            error = answer.json()["error"]
            assert (answer.status_code, error["message"]) == (503, "not ready")
            assert error["detail"] == "the pipeline does not run; a request with a token is told why"
