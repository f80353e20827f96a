"""Sessions of the page: what a cookie allows, and when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.requests import HTTPConnection

from tests.service.running import PRINCIPALS, RunningServer, run_server
from tests.service.test_authorization import allowed, documented, routes, status_of
from tureen.errors import Forbidden
from tureen.service.page import sessions
from tureen.service.page.sessions import COOKIE, PAGE_HEADER, PageSessions


def connection(secret: str | None, method: str = "GET", **headers: str) -> HTTPConnection:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    if secret is not None:
        pairs.append((b"cookie", f"a=b; {COOKIE}={secret}; c=d".encode()))
    return HTTPConnection({"type": "http", "method": method, "headers": pairs})


def test_a_session_has_the_token_it_began_with() -> None:
    known = PageSessions(60)
    first, second = known.begin("token 1"), known.begin("token 2")
    assert [known.token_of(connection(secret)) for secret in (first, second)] == ["token 1", "token 2"]
    assert known.token_of(connection(None)) is None
    assert known.token_of(connection(first[:-1])) is None
    assert known.token_of(connection("\x00nonsense;;=")) is None


@pytest.mark.parametrize("other", ['a={"x":1}', "x=a b", "word", "é=1", "[]=1", ""])
def test_cookies_of_other_programs_do_not_matter(other: str) -> None:
    known = PageSessions(60)
    cookie = f"{other}; {COOKIE}={known.begin('token')}; b=2".encode("latin-1")
    headers = [(b"cookie", cookie)]
    assert known.token_of(HTTPConnection({"type": "http", "method": "GET", "headers": headers})) == "token"


def test_a_session_ends_when_its_time_is_over_or_it_is_signed_out() -> None:
    now = [0.0]
    known = PageSessions(60, lambda: now[0])
    early, left = known.begin("early"), known.begin("left")
    known.end(connection(left))
    assert known.token_of(connection(left)) is None
    now[0] = 59.9
    assert known.token_of(connection(early)) == "early"
    now[0] = 60.0
    assert known.token_of(connection(early)) is None
    known.begin("late")
    assert len(known) == 1


def test_requests_that_change_something_need_the_header() -> None:
    known = PageSessions(60)
    secret = known.begin("token")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with pytest.raises(Forbidden, match=PAGE_HEADER):
            known.token_of(connection(secret, method))
        assert known.token_of(connection(secret, method, x_tureen_page="1")) == "token"


def test_a_token_cannot_end_the_sessions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS_OF_A_TOKEN", 2)
    known = PageSessions(60)
    other = known.begin("other")
    secrets = [known.begin("greedy") for _ in range(4)]
    assert [known.token_of(connection(secret)) for secret in secrets] == [None, None, "greedy", "greedy"]
    assert known.token_of(connection(other)) == "other"


def test_the_oldest_session_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    known = PageSessions(60)
    secrets = [known.begin(str(number)) for number in range(3)]
    assert [known.token_of(connection(secret)) for secret in secrets] == [None, "1", "2"]


@contextmanager
def signed_in(served: RunningServer, token: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=60, headers={PAGE_HEADER: "1"}) as client:
        response = client.post("/page/session", json={"token": served.tokens[token]})
        assert response.status_code == 201, response.text
        yield client


@pytest.mark.parametrize("token", [*PRINCIPALS])
def test_a_session_allows_what_its_token_allows(served: RunningServer, token: str) -> None:
    scopes = documented()
    with signed_in(served, token) as client:
        for method, path in routes():
            if path == "/page/session":
                continue
            status = status_of(client, method, path)
            is_allowed = scopes[method, path] == "–" or allowed(scopes[method, path], token)
            expected = status not in (401, 403) if is_allowed else status in (403, 422)
            assert expected, (method, path, token, status)


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(served: RunningServer) -> None:
    response = httpx.post(f"{served.url}/page/session", json={"token": served.tokens["read"]})
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert served.tokens["read"] not in cookie
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {"principal": "local", "scopes": ["read"], "seconds_left": 43200.0, "has_tokens": True}


def test_signing_out_ends_the_session_on_the_server(served: RunningServer) -> None:
    with signed_in(served, "both") as client:
        stolen = dict(client.cookies)
        assert client.get("/v1/streams").status_code == 200
        assert client.get("/page/session").json()["principal"] == "local"
        assert client.delete("/page/session").status_code == 204
        assert client.get("/page/session").json()["principal"] is None
    assert httpx.get(f"{served.url}/v1/streams", cookies=stolen).status_code == 401


def test_other_sites_cannot_write(served: RunningServer) -> None:
    with signed_in(served, "admin") as client:
        del client.headers[PAGE_HEADER]
        refused = client.post("/v1/streams", json={"name": "never", "schema": "a INT"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert client.get("/v1/streams/never").status_code == 404


def test_a_session_ends_with_its_token(served: RunningServer) -> None:
    with served.client() as admin:
        made = admin.post("/v1/tokens", json={"principal": "short", "scopes": ["read"]}).json()
        with httpx.Client(base_url=served.url) as client:
            assert client.post("/page/session", json={"token": made["token"]}).status_code == 201
            assert client.get("/v1/streams").status_code == 200
            assert admin.delete(f"/v1/tokens/{made['id']}").status_code == 204
            assert client.get("/v1/streams").status_code == 401


def test_an_invalid_token_begins_no_session(served: RunningServer) -> None:
    refused = httpx.post(f"{served.url}/page/session", json={"token": "tureen_0123456789abcdef_" + 43 * "x"})
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers


def test_a_server_without_the_page_has_none(served: RunningServer) -> None:
    with run_server(served.soup, page=False) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/").status_code == 404
        assert client.get("/page/app.js").status_code == 404
        assert client.post("/page/session", json={"token": served.tokens["admin"]}).status_code == 404
