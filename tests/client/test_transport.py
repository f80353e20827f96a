"""Failing connections: which requests are retried, and that nothing is lost or duplicated."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice

import pytest

import tureen
from tests.client.proxy import Proxy
from tests.service.running import RunningServer, run_server
from tureen.errors import ServiceError, TooMany, TureenError, Unreachable

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_push_with_lost_response_is_added_once(
    served_pot: RunningServer, client: tureen.Client, faulty: Proxy, stream: str
) -> None:
    client.push(stream, [{"n": 0, "at": AT}])
    faulty.responses_to_lose = 2
    position = client.push(stream, [{"n": 1, "at": AT}])
    assert faulty.responses_to_lose == 0
    query = served_pot.soup.register(f"SELECT n FROM {stream}")
    assert [row["n"] for row in query.invoke(wait_for=position)] == [0, 1]


def test_registration_with_lost_response_is_not_retried(
    served_pot: RunningServer, client: tureen.Client, faulty: Proxy, stream: str
) -> None:
    client.streams()
    before = len(served_pot.soup.queries())
    faulty.responses_to_lose = 1
    with pytest.raises(Unreachable):
        client.register(f"SELECT n FROM {stream}")
    assert len(served_pot.soup.queries()) == before + 1


def test_removal_with_lost_response_succeeds(client: tureen.Client, faulty: Proxy, stream: str) -> None:
    query = client.register(f"SELECT n FROM {stream}")
    faulty.responses_to_lose = 1
    query.unregister()
    with pytest.raises(tureen.TureenError):
        query.invoke()


def test_request_survives_server_restart(client: tureen.Client, faulty: Proxy) -> None:
    before = client.streams()
    faulty.stop()
    restart = threading.Timer(0.3, faulty.restart)
    restart.start()
    assert client.streams() == before
    restart.join()


def test_unknown_server_fails_without_retry(client: tureen.Client, faulty: Proxy) -> None:
    faulty.stop()
    with pytest.raises(Unreachable, match="no answer from") as raised:
        client.streams()
    assert "tureen serve" in (raised.value.hint or "")


def test_changes_resume_after_cut(served_pot: RunningServer, client: tureen.Client, faulty: Proxy, stream: str) -> None:
    query = client.register(f"SELECT n, at, d FROM {stream}")
    changes = query.changes(since=query.invoke().position)
    soup = served_pot.soup
    soup.push(stream, [{"n": number, "at": AT, "d": "1.50"} for number in range(3)])
    seen = [next(changes)]
    for number in (10, 20):
        faulty.cut()
        soup.push(stream, [{"n": number, "at": AT}])
        seen.append(next(changes))
    seen += islice(changes, 2)
    assert [change.row["n"] for change in seen] == [0, 1, 2, 10, 20]
    assert seen[0].row == {"n": 0, "at": AT, "d": seen[1].row["d"]}
    assert faulty.connections > 2


def test_changes_from_now_survive_cut(
    served_pot: RunningServer, client: tureen.Client, faulty: Proxy, stream: str
) -> None:
    changes = client.register(f"SELECT n FROM {stream}").changes()
    faulty.cut()
    served_pot.soup.push(stream, [{"n": 5, "at": AT}])
    assert next(changes).row == {"n": 5}


def test_changes_raise_after_unregister(client: tureen.Client, stream: str) -> None:
    query = client.register(f"SELECT n FROM {stream}")
    changes = query.changes()
    query.unregister()
    with pytest.raises(TureenError, match="no query"):
        next(changes)


def test_busy_server_is_retried_until_patience_ends(served_pot: RunningServer, stream: str) -> None:
    with run_server(served_pot.soup, max_followers=1) as small:
        with tureen.connect(small.url, small.tokens["admin"], patience=0.5) as client:
            query = client.register(f"SELECT n FROM {stream}")
            first = query.changes()
            with pytest.raises(TooMany):
                query.changes(timeout=0)
        with tureen.connect(small.url, small.tokens["admin"]) as client:
            del first
            assert list(client.query(query.id).changes(timeout=0)) == []


def test_closed_client_raises(client: tureen.Client, stream: str) -> None:
    changes = client.register(f"SELECT n FROM {stream}").changes()
    client.close()
    for call in (client.streams, lambda: next(changes)):
        with pytest.raises(TureenError, match="closed"):
            call()


class _Gateway(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer as a gateway without a server."""
        self.send_response(502)
        self.end_headers()
        self.wfile.write(b"<html>Bad Gateway</html>")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_gateway_error_is_service_error() -> None:
    with HTTPServer(("127.0.0.1", 0), _Gateway) as gateway:
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        with tureen.connect(f"http://127.0.0.1:{gateway.server_port}", patience=0) as client:
            with pytest.raises(ServiceError, match="502") as raised:
                client.streams()
            assert (raised.value.code, raised.value.detail) == ("status_502", "<html>Bad Gateway</html>")
            with pytest.raises(ServiceError, match="502"):
                client.feed()
        gateway.shutdown()
        thread.join()
