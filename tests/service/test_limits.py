"""Queries that take too much: each fails alone and says why, and others are answered meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.service.running import Running
from tureen.evaluation import limits as evaluation


@contextmanager
def meanwhile(served: Running, work: Callable[[], object]) -> Iterator[httpx.Client]:
    """Another client, while something is done."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        with served.client("other") as another:
            yield another
    finally:
        thread.join()


def register(http: httpx.Client, sql: str) -> str:
    made = http.post("/v1/queries", json={"sql": sql})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def fill(http: httpx.Client, stream: str, rows: int) -> None:
    """Push so many rows, and wait until they are in."""
    body = [{"id": n, "sym": f"s{n}", "price": 1.0, "ts": "2026-01-01T00:00:00Z"} for n in range(rows)]
    position = http.post(f"/v1/streams/{stream}/rows", json=body).json()["position"]
    waited = http.get("/v1/wait", params={"position": position, "timeout": 200}, timeout=250)
    assert waited.status_code == 200, waited.text


def test_query_that_takes_too_long_fails_alone(
    served: Running, http: httpx.Client, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(http, stream, 5_000)
    lengths = ", ".join(f"length(rpad(sym, 10000, 'a{n}')) AS n{n}" for n in range(30))
    slow = register(http, f"SELECT {lengths} FROM {stream}")
    monkeypatch.setattr(evaluation, "TIME_LIMIT", 0.3)
    answers: list[httpx.Response] = []

    def invoke() -> None:
        with served.client() as own:
            answers.append(own.get(f"/v1/queries/{slow}/result"))

    with meanwhile(served, invoke) as another:
        quick = register(another, f"SELECT count(*) AS n FROM {stream}")
        for _ in range(10):
            assert another.get(f"/v1/queries/{quick}/result").json()["rows"] == [{"n": 5_000}]
    error = answers[0].json()["error"]
    assert (answers[0].status_code, error["code"]) == (409, "limit_exceeded")
    assert error["message"] == "an expression took more than 0.3 seconds"
    # The query stands as before: with more time it is answered.
    monkeypatch.undo()
    assert http.get(f"/v1/queries/{slow}/result", params={"limit": 1}).status_code == 200


def test_query_that_makes_long_texts_fails_alone(http: httpx.Client, stream: str) -> None:
    fill(http, stream, 20)
    longer = "replace(rpad(sym, 10000, 'xy'), 'x', rpad(sym, 10000, 'ab'))"
    handle = register(http, f"SELECT length(replace({longer}, 'a', {longer})) AS n FROM {stream}")
    failed = http.get(f"/v1/queries/{handle}/result")
    assert (failed.status_code, failed.json()["error"]["code"]) == (409, "query_failed")
    assert "a text of more than 10000 characters" in failed.json()["error"]["detail"]
    assert http.get("/v1/status").status_code == 200


def test_long_list_is_registered_while_others_are_answered(served: Running, http: httpx.Client, stream: str) -> None:
    fill(http, stream, 100)
    numbers = ", ".join(str(3 * n) for n in range(100_000))
    handles: list[str] = []

    def register_list() -> None:
        with served.client() as own:
            handles.append(register(own, f"SELECT id FROM {stream} WHERE id IN ({numbers})"))

    with meanwhile(served, register_list) as another:
        quick = register(another, f"SELECT count(*) AS n FROM {stream}")
        for _ in range(10):
            assert another.get(f"/v1/queries/{quick}/result").json()["rows"] == [{"n": 100}]
    rows = http.get(f"/v1/queries/{handles[0]}/result").json()["rows"]
    assert [row["id"] for row in rows] == list(range(0, 100, 3))


@pytest.mark.parametrize("levels", [100, 101, 10_000])
def test_nesting_is_refused_where_the_message_says(http: httpx.Client, stream: str, levels: int) -> None:
    sql = f"SELECT id FROM {stream} WHERE {'(' * levels}id = 1{')' * levels}"
    made = http.post("/v1/queries", json={"sql": sql})
    if levels <= 100:
        assert made.status_code == 201
    else:
        assert made.status_code == 400
        assert made.json()["error"]["hint"] == "at most 100 levels of parentheses and CASE"
