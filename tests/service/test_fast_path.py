"""The fast path of invocations: its responses equal those of the router."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from tests.fast_path_switch import without_fast_paths
from tests.service.running import RunningServer, run_server_without_fast_path
from tureen.fast_paths import FastPath
from tureen.service.app import make_app
from tureen.service.bodies import ARROW
from tureen.service.fast_path import InvocationFastPath, plain_invocation
from tureen.service.middleware import RequestMiddleware

ROUTE = "/v1/queries/{handle}/result"
VOLATILE = {"tureen-position", "tureen-window-begin", "tureen-window-end"}
"""Headers that differ between two requests."""


@pytest.fixture(scope="module")
def routed(served: RunningServer) -> Iterator[RunningServer]:
    """A second server of the same pot, without the fast path."""
    with run_server_without_fast_path(served.soup) as server:
        yield server


@pytest.fixture(scope="module")
def handles(served: RunningServer) -> dict[str, str]:
    """The handles of queries with different kinds of answers."""
    soup = served.soup
    soup.create_stream("polled", "id BIGINT, sym STRING")
    template = soup.register_many("SELECT sym FROM polled WHERE id = :id", [{"id": 1}])
    selects = {
        "rows": "SELECT id, sym FROM polled WHERE id < 3",
        "window": "SELECT count(*) AS n FROM polled BEGIN NOW - 1 DAY END NOW",
        "empty": "SELECT id FROM polled WHERE id < 0",
        "large": "SELECT id, sym FROM polled",
        "failed": "SELECT 1 / (id - 7) AS x FROM polled",
    }
    handles = {name: soup.register(sql).id for name, sql in selects.items()}
    soup.wait(soup.push("polled", [{"id": number, "sym": "x" * 50} for number in range(10_000)]))
    return handles | {"template": f"{template.id}.0"}


REQUESTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "rows": ("GET", "{rows}", {}),
    "window": ("GET", "{window}", {}),
    "empty": ("GET", "{empty}", {}),
    "large": ("GET", "{large}", {}),
    "uncompressed": ("GET", "{rows}", {"Accept-Encoding": "identity"}),
    "CSV": ("GET", "{rows}", {"Accept": "text/csv"}),
    "Arrow": ("GET", "{large}", {"Accept": ARROW}),
    "cached": ("GET", "{rows}", {"If-None-Match": "*"}),
    "limit": ("GET", "{large}", {}),
    "no rows": ("GET", "{rows}", {}),
    "huge limit": ("GET", "{rows}", {}),
    "too large a limit": ("GET", "{rows}", {}),
    "empty limit": ("GET", "{rows}", {}),
    "cached, with a limit": ("GET", "{rows}", {"If-None-Match": "*"}),
    "template": ("GET", "{template}", {}),
    "failed": ("GET", "{failed}", {}),
    "unknown handle": ("GET", "0" * 32, {}),
    "unknown number": ("GET", f"{'0' * 32}.7", {}),
    "dots": ("GET", "." * 32, {}),
    "name": ("GET", "nobody", {}),
    "unsupported format": ("GET", "{rows}", {"Accept": "image/png"}),
    "unsupported encoding": ("GET", "{rows}", {"Content-Encoding": "br"}),
    "other method": ("DELETE", "{rows}", {}),
    "head": ("HEAD", "{rows}", {}),
}
"""Requests for results: the method, the handle and headers."""

PARAMETERS = {
    "limit": "?limit=2",
    "no rows": "?limit=0",
    "huge limit": f"?limit={10**17}",
    "too large a limit": f"?limit={10**30}",
    "empty limit": "?limit=",
    "cached, with a limit": "?limit=007",
}
"""The parameters of those that have some."""


@pytest.mark.parametrize("token", ["both", "read", "write", "other", None])
@pytest.mark.parametrize("name", REQUESTS)
def test_responses_are_the_same(
    served: RunningServer, routed: RunningServer, handles: dict[str, str], name: str, token: str | None
) -> None:
    method, handle, headers = REQUESTS[name]
    path = ROUTE.format(handle=handle.format(**handles)) + PARAMETERS.get(name, "")
    headers = {**headers, "X-Request-Id": "compared"}
    with served.client(token) as fast, routed.client(token) as plain:
        assert comparable(fast.request(method, path, headers=headers)) == comparable(
            plain.request(method, path, headers=headers)
        )


def comparable(response: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    """The parts of a response that do not depend on when it was sent."""
    headers = {key: value for key, value in response.headers.items() if key not in VOLATILE}
    body = response.content
    if headers.get("content-type") == "application/json":
        body = re.sub(rb'"(position|begin|end)":"[^"]*"', b"", body)
        # The length of a compressed body depends on the times in it.
        headers.pop("content-length", None)
    return response.status_code, headers, body


@pytest.mark.parametrize(
    ("method", "path", "query_string", "expected"),
    [
        ("GET", ROUTE.format(handle="0" * 32), b"", ("0" * 32, None)),
        ("GET", ROUTE.format(handle=f"{'0' * 32}.12"), b"", (f"{'0' * 32}.12", None)),
        ("GET", ROUTE.format(handle="0" * 32), b"limit=500", ("0" * 32, 500)),
        ("GET", ROUTE.format(handle="0" * 32), b"limit=-1", None),
        ("GET", ROUTE.format(handle="0" * 32), b"limit=1&limit=2", None),
        ("GET", ROUTE.format(handle="0" * 32), b"timeout=1", None),
        ("POST", ROUTE.format(handle="0" * 32), b"", None),
        ("GET", ROUTE.format(handle="big"), b"", None),
        ("GET", "/v1/queries", b"", None),
    ],
)
def test_only_plain_invocations_take_the_fast_path(
    method: str, path: str, query_string: bytes, expected: tuple[str, int | None] | None
) -> None:
    scope = {"type": "http", "method": method, "path": path, "query_string": query_string}
    assert plain_invocation(scope) == expected


def test_fast_path_can_be_turned_off(served: RunningServer) -> None:
    on = make_app(served.service)
    with without_fast_paths(FastPath.HTTP_FAST_PATH):
        off = make_app(served.service)
    assert isinstance(on, RequestMiddleware)
    assert isinstance(on._app, InvocationFastPath)
    assert isinstance(off, RequestMiddleware)
    assert isinstance(off._app, FastAPI)


def test_requests_are_counted_by_the_same_route(
    served: RunningServer, routed: RunningServer, handles: dict[str, str]
) -> None:
    for server in (served, routed):
        counter = server.service.metrics.requests.labels("GET", ROUTE, "200")
        before = counter._value.get()
        with server.client("read") as client:
            assert client.get(ROUTE.format(handle=handles["rows"])).status_code == 200
        assert counter._value.get() == before + 1
