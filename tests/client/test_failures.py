"""A way to the server that fails: what is repeated, what is not, and that nothing is lost or doubled."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice

import pytest

import tureen
from tests.client.proxy import Proxy
from tests.service.running import Running, running
from tureen.errors import ServiceError, TooMany, TureenError, Unreachable

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_push_whose_answer_is_lost_is_there_once(
    served_pot: Running, client: tureen.Client, door: Proxy, stream: str
) -> None:
    client.push(stream, [{"n": 0, "at": AT}])
    door.lose_answers = 2
    at = client.push(stream, [{"n": 1, "at": AT}])
    assert door.lose_answers == 0
    query = served_pot.soup.register(f"SELECT n FROM {stream}")
    assert [row["n"] for row in query.invoke(wait_for=at)] == [0, 1]


def test_a_registration_whose_answer_is_lost_is_not_repeated(
    served_pot: Running, client: tureen.Client, door: Proxy, stream: str
) -> None:
    client.streams()
    before = len(served_pot.soup.queries())
    door.lose_answers = 1
    with pytest.raises(Unreachable):
        client.register(f"SELECT n FROM {stream}")
    assert len(served_pot.soup.queries()) == before + 1


def test_a_removal_whose_answer_is_lost_is_done(client: tureen.Client, door: Proxy, stream: str) -> None:
    query = client.register(f"SELECT n FROM {stream}")
    door.lose_answers = 1
    query.unregister()
    with pytest.raises(tureen.TureenError):
        query.invoke()


def test_a_server_that_goes_away_and_comes_back(client: tureen.Client, door: Proxy) -> None:
    known = client.streams()
    door.shut()
    back = threading.Timer(0.3, door.open_again)
    back.start()
    assert client.streams() == known
    back.join()


def test_a_server_that_was_never_there_is_told_of_at_once(client: tureen.Client, door: Proxy) -> None:
    door.shut()
    with pytest.raises(Unreachable, match="no answer from") as raised:
        client.streams()
    assert "tureen serve" in (raised.value.hint or "")


def test_following_goes_on_where_it_was_cut(
    served_pot: Running, client: tureen.Client, door: Proxy, stream: str
) -> None:
    query = client.register(f"SELECT n, at, d FROM {stream}")
    changes = query.changes(since=query.invoke().position)
    soup = served_pot.soup
    soup.push(stream, [{"n": number, "at": AT, "d": "1.50"} for number in range(3)])
    seen = [next(changes)]
    for number in (10, 20):
        door.cut()
        soup.push(stream, [{"n": number, "at": AT}])
        seen.append(next(changes))
    seen += islice(changes, 2)
    assert [change.row["n"] for change in seen] == [0, 1, 2, 10, 20]
    assert seen[0].row == {"n": 0, "at": AT, "d": seen[1].row["d"]}
    assert door.connections > 2


def test_following_from_now_on_misses_nothing_after_a_cut(
    served_pot: Running, client: tureen.Client, door: Proxy, stream: str
) -> None:
    changes = client.register(f"SELECT n FROM {stream}").changes()
    door.cut()
    served_pot.soup.push(stream, [{"n": 5, "at": AT}])
    assert next(changes).row == {"n": 5}


def test_following_ends_with_what_ends_it(client: tureen.Client, stream: str) -> None:
    query = client.register(f"SELECT n FROM {stream}")
    changes = query.changes()
    query.unregister()
    with pytest.raises(TureenError, match="no query"):
        next(changes)


def test_a_busy_server_is_asked_again_for_a_while(served_pot: Running, stream: str) -> None:
    with running(served_pot.soup, max_followers=1) as small:
        with tureen.connect(small.url, small.tokens["admin"], patience=0.5) as client:
            query = client.register(f"SELECT n FROM {stream}")
            first = query.changes()
            with pytest.raises(TooMany):
                query.changes(timeout=0)
        with tureen.connect(small.url, small.tokens["admin"]) as client:
            del first
            assert list(client.query(query.id).changes(timeout=0)) == []


def test_a_client_that_was_closed(client: tureen.Client, stream: str) -> None:
    changes = client.register(f"SELECT n FROM {stream}").changes()
    client.close()
    for call in (client.streams, lambda: next(changes)):
        with pytest.raises(TureenError, match="closed"):
            call()


class _Gateway(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer as a proxy does whose server is gone."""
        self.send_response(502)
        self.end_headers()
        self.wfile.write(b"<html>Bad Gateway</html>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_what_is_no_tureen_server() -> None:
    with HTTPServer(("127.0.0.1", 0), _Gateway) as gateway:
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        with tureen.connect(f"http://127.0.0.1:{gateway.server_port}", patience=0) as client:
            with pytest.raises(ServiceError, match="502") as raised:
                client.streams()
            assert (raised.value.code, raised.value.detail) == ("status_502", "<html>Bad Gateway</html>")
            with pytest.raises(ServiceError, match="502"):
                client.changes("x")
        gateway.shutdown()
        thread.join()
