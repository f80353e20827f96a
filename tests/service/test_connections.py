"""Connections that send too much, too slowly or nothing are closed, while others are served."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

import pytest

from tests.service.running import RunningServer, run_server

LIMITS = {
    "max_header_bytes": 16_384,
    "max_headers": 50,
    "header_seconds": 1.0,
    "body_seconds": 1.0,
    "idle_seconds": 1.0,
    "write_seconds": 1.0,
    "max_connections": 200,
    "heartbeat": 0.05,
}
HEAD = b"GET /v1/status HTTP/1.1\r\nHost: tureen\r\n"


@pytest.fixture(scope="module")
def limited(served: RunningServer) -> Iterator[RunningServer]:
    """A second server of the same pot, with low limits."""
    with run_server(served.soup, **LIMITS) as server:
        yield server


def connect(server: RunningServer) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def error_in(response: bytes) -> tuple[int, str]:
    """The status and the error message of a raw response."""
    head, _, body = response.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


def assert_serves(server: RunningServer, times: int = 5) -> None:
    """Assert that requests of another client are answered."""
    with server.client() as http:
        for _ in range(times):
            assert http.get("/v1/status").status_code == 200


def test_endless_header_is_refused(limited: RunningServer) -> None:
    stopped = threading.Event()

    def send(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(HEAD + b"X-Long: ")
            while not stopped.is_set():
                connection.sendall(b"a" * 65_536)

    with closing(connect(limited)) as connection:
        sender = threading.Thread(target=send, args=(connection,))
        sender.start()
        try:
            assert_serves(limited)
            assert error_in(read_all(connection)) == (431, "the headers must be at most 16,384 bytes")
        finally:
            stopped.set()
            connection.close()
            sender.join()


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"X-Long: " + b"a" * 20_000 + b"\r\n", "the headers must be at most 16,384 bytes"),
        (b"".join(b"X-%d: 1\r\n" % number for number in range(60)), "a request must have at most 50 headers"),
    ],
    ids=["bytes", "number"],
)
def test_large_headers_are_refused(limited: RunningServer, sent: bytes, message: str) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + sent + b"\r\n")
        assert error_in(read_all(connection)) == (431, message)
    assert_serves(limited)


def test_long_url_is_refused(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n")
        assert error_in(read_all(connection))[0] == 431


def test_headers_within_the_limits_are_accepted(limited: RunningServer) -> None:
    headers = {f"X-{number}": "a" * 300 for number in range(40)}
    with limited.client() as http:
        assert http.get("/v1/status", headers=headers).status_code == 200


def test_endless_trailer_is_refused(limited: RunningServer) -> None:
    head = b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nTransfer-Encoding: chunked\r\n"
    token = b"Authorization: Bearer " + limited.tokens["admin"].encode() + b"\r\n\r\n"
    with closing(connect(limited)) as connection, suppress(OSError):
        connection.sendall(head + token + b"2\r\n{}\r\n0\r\nX-Trailer: ")
        for _ in range(1_000):
            connection.sendall(b"a" * 65_536)
        pytest.fail("the server read 64 MB of a trailer")


def test_incomplete_headers_time_out(limited: RunningServer) -> None:
    """A connection with incomplete headers gets 408; a connection without data is closed."""
    with ExitStack() as stack:
        begun = [stack.enter_context(closing(connect(limited))) for _ in range(60)]
        silent = [stack.enter_context(closing(connect(limited))) for _ in range(60)]
        for connection in begun:
            connection.sendall(HEAD)
        assert_serves(limited)
        for connection in begun:
            assert error_in(read_all(connection)) == (408, "the headers were not sent within 1 seconds")
        assert {read_all(connection) for connection in silent} == {b""}


def test_slowly_sent_headers_time_out(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + b"X-Slow: ")
        connection.settimeout(0.05)
        for _ in range(10_000):
            with suppress(TimeoutError):
                assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
                return
            connection.sendall(b"a")
        pytest.fail("the request never timed out")


@pytest.mark.parametrize("slowly", [False, True], ids=["silent", "slowly"])
def test_missing_body_times_out(limited: RunningServer, slowly: bool) -> None:
    lines = ["POST /v1/sql HTTP/1.1", "Host: tureen", "Content-Type: application/json", "Content-Length: 100000"]
    head = "\r\n".join([*lines, f"Authorization: Bearer {limited.tokens['admin']}", "", "{"])
    with closing(connect(limited)) as connection:
        connection.sendall(head.encode())
        assert_serves(limited)
        connection.settimeout(0.05)
        for _ in range(10_000):
            with suppress(TimeoutError):
                assert error_in(read_if_ready(connection)) == (408, "the body was not sent within 1 seconds")
                return
            if slowly:
                connection.sendall(b" ")
        pytest.fail("the request never timed out")


def read_if_ready(connection: socket.socket) -> bytes:
    """Read until the server closes the connection; raises TimeoutError if no data has arrived."""
    first = connection.recv(65_536)
    connection.settimeout(60)
    return first + read_all(connection)


def test_unauthenticated_request_does_not_wait_for_its_body(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nContent-Length: 100000\r\n\r\n{")
        assert_serves(limited)
        assert read_all(connection).startswith(b"HTTP/1.1 401 ")


def test_refused_body_is_cut_off(served: RunningServer) -> None:
    with run_server(served.soup, max_body_bytes=1_000_000) as server, closing(connect(server)) as connection:
        connection.sendall(b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nContent-Length: 1000000000000\r\n\r\n")
        with suppress(OSError):
            for _ in range(1_000):
                connection.sendall(b"a" * 1_000_000)
            pytest.fail("the server read 1 GB of a body")


def test_idle_connections_are_closed(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: tureen\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 ")
        # Empty lines between requests are ignored and do not keep the connection open.
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: tureen\r\n\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 ")


def test_connections_above_the_limit_are_refused(served: RunningServer) -> None:
    """Existing connections are still served."""
    with run_server(served.soup, max_connections=30) as server, server.client() as http, ExitStack() as stack:
        assert http.get("/v1/status").status_code == 200
        for _ in range(29):
            stack.enter_context(closing(connect(server))).sendall(HEAD)
        with closing(connect(server)) as connection:
            assert error_in(read_all(connection)) == (503, "the server accepts at most 30 connections")
        assert http.get("/v1/status").status_code == 200
        with server.client() as other:
            refused = other.get("/v1/status")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_pipelined_requests_above_the_limit_are_refused(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        with suppress(OSError):
            connection.sendall((HEAD + b"\r\n") * 5_000)
        assert read_all(connection).count(b"HTTP/1.1 ") < 5_000
    assert_serves(limited)


def test_followers_that_do_not_read_are_closed(limited: RunningServer) -> None:
    """The buffer of such a follower is bounded, and other followers get all changes."""
    with limited.client("both") as http:
        assert http.post("/v1/streams", json={"name": "stalled", "schema": "id BIGINT, text STRING"}).status_code == 201
        handle = http.post("/v1/queries", json={"sql": "SELECT * FROM stalled"}).json()["id"]
        path = f"/v1/queries/{handle}/changes"
        before = limited.service.following.total
        token = limited.tokens["both"]
        with ExitStack() as stack, http.stream("GET", path) as follower:
            lines = follower.iter_lines()
            assert next(lines).startswith("id: ")
            stalled = []
            for _ in range(10):
                connection = stack.enter_context(closing(connect(limited)))
                head = f"GET {path} HTTP/1.1\r\nHost: tureen\r\nAuthorization: Bearer {token}\r\n\r\n"
                connection.sendall(head.encode())
                assert connection.recv(12) == b"HTTP/1.1 200"
                stalled.append(connection)
            assert limited.service.following.total == before + 11
            rows = gzip.compress(json.dumps([{"id": n, "text": "x" * 100_000} for n in range(100)]).encode())
            headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
            assert http.post("/v1/streams/stalled/rows", content=rows, headers=headers).status_code == 202
            changes = (json.loads(line[6:]) for line in lines if line.startswith("data: {") and "row" in line)
            assert [change["row"]["id"] for change in itertools.islice(changes, 100)] == list(range(100))
            assert largest_buffer(limited) < 1_000_000
            while limited.service.following.total > before + 1:
                assert_serves(limited, 1)


def largest_buffer(server: RunningServer) -> int:
    """The size of the largest write buffer of all connections."""
    connections = list(server.server.server_state.connections)
    return max(connection.transport.get_write_buffer_size() for connection in connections)


def test_refused_connections_are_counted(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n")
        read_all(connection)
    with limited.client() as http:
        metrics = http.get("/metrics").text
    assert 'tureen_http_requests_total{method="-",route="-",status="431"}' in metrics


def test_invalid_http_gets_an_error_body(limited: RunningServer) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert error_in(read_all(connection)) == (400, "the request is not valid HTTP/1.1")


def test_client_can_read_the_refusal(limited: RunningServer) -> None:
    with limited.client() as http:
        refused = http.get("/v1/status", headers={"X-Long": "a" * 20_000})
    assert refused.status_code == 431
    assert refused.json()["error"]["code"] == "headers_too_large"
