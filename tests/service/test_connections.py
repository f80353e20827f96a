"""Connections that send too much, too slowly or nothing at all: each is ended, and the others are answered."""

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

from tests.service.running import Running, running

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
def limited(served: Running) -> Iterator[Running]:
    """A second server of the same pot, with limits that are soon reached."""
    with running(served.soup, **LIMITS) as server:
        yield server


def connect(server: Running) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def read_all(connection: socket.socket) -> bytes:
    """Everything that the server sends until it closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def error_in(answer: bytes) -> tuple[int, str]:
    """The status and the message of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


def answers(server: Running, times: int = 5) -> None:
    """Another client is answered, on a connection of its own."""
    with server.client() as http:
        for _ in range(times):
            assert http.get("/v1/status").status_code == 200


def test_endless_header_is_refused(limited: Running) -> None:
    """It is refused long before its end, and nobody waits for it."""
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
            answers(limited)
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
def test_large_headers_are_refused(limited: Running, sent: bytes, message: str) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + sent + b"\r\n")
        assert error_in(read_all(connection)) == (431, message)
    answers(limited)


def test_long_address_is_refused(limited: Running) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n")
        assert error_in(read_all(connection))[0] == 431


def test_headers_within_the_limits_are_taken(limited: Running) -> None:
    more = {f"X-{number}": "a" * 300 for number in range(40)}
    with limited.client() as http:
        assert http.get("/v1/status", headers=more).status_code == 200


def test_endless_trailer_is_refused(limited: Running) -> None:
    head = b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nTransfer-Encoding: chunked\r\n"
    token = b"Authorization: Bearer " + limited.tokens["admin"].encode() + b"\r\n\r\n"
    with closing(connect(limited)) as connection, suppress(OSError):
        connection.sendall(head + token + b"2\r\n{}\r\n0\r\nX-Trailer: ")
        for _ in range(1_000):
            connection.sendall(b"a" * 65_536)
        pytest.fail("64 MB of a trailer were read")


def test_half_open_requests_are_ended(limited: Running) -> None:
    """Those that sent a part of their headers get 408; those that sent nothing are closed."""
    with ExitStack() as stack:
        begun = [stack.enter_context(closing(connect(limited))) for _ in range(60)]
        silent = [stack.enter_context(closing(connect(limited))) for _ in range(60)]
        for connection in begun:
            connection.sendall(HEAD)
        answers(limited)
        for connection in begun:
            assert error_in(read_all(connection)) == (408, "the headers were not sent within 1 seconds")
        assert {read_all(connection) for connection in silent} == {b""}


def test_slowly_sent_headers_are_ended(limited: Running) -> None:
    """A byte now and then does not keep a request open."""
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + b"X-Slow: ")
        connection.settimeout(0.05)
        for _ in range(10_000):
            with suppress(TimeoutError):
                assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
                return
            connection.sendall(b"a")
        pytest.fail("it was never ended")


@pytest.mark.parametrize("slowly", [False, True], ids=["silent", "slowly"])
def test_body_that_does_not_come_is_ended(limited: Running, slowly: bool) -> None:
    lines = ["POST /v1/sql HTTP/1.1", "Host: tureen", "Content-Type: application/json", "Content-Length: 100000"]
    head = "\r\n".join([*lines, f"Authorization: Bearer {limited.tokens['admin']}", "", "{"])
    with closing(connect(limited)) as connection:
        connection.sendall(head.encode())
        answers(limited)
        connection.settimeout(0.05)
        for _ in range(10_000):
            with suppress(TimeoutError):
                assert error_in(read_all_of(connection)) == (408, "the body was not sent within 1 seconds")
                return
            if slowly:
                connection.sendall(b" ")
        pytest.fail("it was never ended")


def read_all_of(connection: socket.socket) -> bytes:
    """What the server sends, if the first of it is there."""
    first = connection.recv(65_536)
    connection.settimeout(60)
    return first + read_all(connection)


def test_body_that_nobody_reads_is_ended(limited: Running) -> None:
    """Without a token the answer is 401 at once; the body that was announced is not waited for."""
    with closing(connect(limited)) as connection:
        connection.sendall(b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nContent-Length: 100000\r\n\r\n{")
        answers(limited)
        assert read_all(connection).startswith(b"HTTP/1.1 401 ")


def test_body_that_nobody_reads_does_not_go_on_for_ever(served: Running) -> None:
    with running(served.soup, max_body_bytes=1_000_000) as server, closing(connect(server)) as connection:
        connection.sendall(b"POST /v1/sql HTTP/1.1\r\nHost: tureen\r\nContent-Length: 1000000000000\r\n\r\n")
        with suppress(OSError):
            for _ in range(1_000):
                connection.sendall(b"a" * 1_000_000)
            pytest.fail("1 GB of a body were read")


def test_idle_connections_are_closed(limited: Running) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: tureen\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 ")
        # Line ends between requests mean nothing, and do not keep it open either.
    with closing(connect(limited)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: tureen\r\n\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 ")


def test_too_many_connections_are_refused(served: Running) -> None:
    """Those that are there already are answered as before."""
    with running(served.soup, max_connections=30) as server, server.client() as http, ExitStack() as stack:
        assert http.get("/v1/status").status_code == 200
        for _ in range(29):
            stack.enter_context(closing(connect(server))).sendall(HEAD)
        with closing(connect(server)) as connection:
            assert error_in(read_all(connection)) == (503, "the server has 30 connections, which is its limit")
        assert http.get("/v1/status").status_code == 200
        with server.client() as another:
            refused = another.get("/v1/status")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_many_requests_at_once_on_a_connection_are_ended(limited: Running) -> None:
    """So that each connection holds no more than a few requests that wait for those before them."""
    with closing(connect(limited)) as connection:
        with suppress(OSError):
            connection.sendall((HEAD + b"\r\n") * 5_000)
        assert read_all(connection).count(b"HTTP/1.1 ") < 5_000
    answers(limited)


def test_followers_that_do_not_read_are_ended(limited: Running) -> None:
    """What is kept for one is bounded, and is let go of with it; the others are told everything."""
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
            told = (json.loads(line[6:]) for line in lines if line.startswith("data: {") and "row" in line)
            assert [change["row"]["id"] for change in itertools.islice(told, 100)] == list(range(100))
            assert largest_buffer(limited) < 1_000_000
            while limited.service.following.total > before + 1:
                answers(limited, 1)


def largest_buffer(server: Running) -> int:
    """The bytes that wait to be sent on the connection that has most of them."""
    connections = list(server.server.server_state.connections)
    return max(connection.transport.get_write_buffer_size() for connection in connections)


def test_refused_connections_are_counted(limited: Running) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(HEAD + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n")
        read_all(connection)
    with limited.client() as http:
        metrics = http.get("/metrics").text
    assert 'tureen_http_requests_total{method="-",route="-",status="431"}' in metrics


def test_what_is_no_http_gets_the_usual_shape_of_error(limited: Running) -> None:
    with closing(connect(limited)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        assert error_in(read_all(connection)) == (400, "the request is not valid HTTP/1.1")


def test_client_is_told(limited: Running) -> None:
    with limited.client() as http:
        refused = http.get("/v1/status", headers={"X-Long": "a" * 20_000})
    assert refused.status_code == 431
    assert refused.json()["error"]["code"] == "headers_too_large"
