"""Queries that exceed a limit fail with an error that names it, while others are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.service.running import RunningServer
from tureen.evaluation import limits as evaluation


@contextmanager
def during(served: RunningServer, work: Callable[[], object]) -> Iterator[httpx.Client]:
    """A client of another principal, while `work` runs in a thread."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        with served.client("other") as other:
            yield other
    finally:
        thread.join()


def register(http: httpx.Client, sql: str) -> str:
    response = http.post("/v1/queries", json={"sql": sql})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def fill(http: httpx.Client, stream: str, rows: int) -> None:
    """Push rows and wait until they are committed."""
    body = [{"id": n, "sym": f"s{n}", "price": 1.0, "ts": "2026-01-01T00:00:00Z"} for n in range(rows)]
    position = http.post(f"/v1/streams/{stream}/rows", json=body).json()["position"]
    waited = http.get("/v1/wait", params={"position": position, "timeout": 200}, timeout=250)
    assert waited.status_code == 200, waited.text


def test_slow_query_does_not_affect_others(
    served: RunningServer, http: httpx.Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(http, stream, 600)
    lengths = ", ".join(f"length(rpad(sym, 10000, 'a{n}')) AS n{n}" for n in range(30))
    slow = register(http, f"SELECT {lengths} FROM {stream}")
    monkeypatch.setattr(evaluation, "TIME_LIMIT", 0.1)
    responses: list[httpx.Response] = []

    def invoke() -> None:
        with served.client() as own:
            responses.append(own.get(f"/v1/queries/{slow}/result"))

    with during(served, invoke) as other:
        quick = register(other, f"SELECT count(*) AS n FROM {stream}")
        for _ in range(10):
            assert other.get(f"/v1/queries/{quick}/result").json()["rows"] == [{"n": 600}]
    error = responses[0].json()["error"]
    assert (responses[0].status_code, error["code"]) == (409, "limit_exceeded")
    assert error["message"] == "an expression took more than 0.1 seconds"
    # The query is still registered: with more time it is answered.
    monkeypatch.undo()
    assert http.get(f"/v1/queries/{slow}/result", params={"limit": 1}).status_code == 200


def test_query_with_long_texts_fails_alone(http: httpx.Client, stream: str) -> None:
    fill(http, stream, 20)
    longer = "replace(rpad(sym, 10000, 'xy'), 'x', rpad(sym, 10000, 'ab'))"
    handle = register(http, f"SELECT length(replace({longer}, 'a', {longer})) AS n FROM {stream}")
    failed = http.get(f"/v1/queries/{handle}/result")
    assert (failed.status_code, failed.json()["error"]["code"]) == (409, "query_failed")
    assert "a text of more than 10000 characters" in failed.json()["error"]["detail"]
    assert http.get("/v1/status").status_code == 200


def test_long_list_does_not_block_others(served: RunningServer, http: httpx.Client, stream: str) -> None:
    fill(http, stream, 100)
    numbers = ", ".join(str(3 * n) for n in range(100_000))
    handles: list[str] = []

    def register_list() -> None:
        with served.client() as own:
            handles.append(register(own, f"SELECT id FROM {stream} WHERE id IN ({numbers})"))

    with during(served, register_list) as other:
        quick = register(other, f"SELECT count(*) AS n FROM {stream}")
        for _ in range(10):
            assert other.get(f"/v1/queries/{quick}/result").json()["rows"] == [{"n": 100}]
    rows = http.get(f"/v1/queries/{handles[0]}/result").json()["rows"]
    assert [row["id"] for row in rows] == list(range(0, 100, 3))


@pytest.mark.parametrize("levels", [100, 101, 10_000])
def test_nesting_limit_is_that_of_the_message(http: httpx.Client, stream: str, levels: int) -> None:
    sql = f"SELECT id FROM {stream} WHERE {'(' * levels}id = 1{')' * levels}"
    response = http.post("/v1/queries", json={"sql": sql})
    if levels <= 100:
        assert response.status_code == 201
    else:
        assert response.status_code == 400
        assert response.json()["error"]["hint"] == "at most 100 levels of parentheses and CASE"
