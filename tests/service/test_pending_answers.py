"""Pending rows over HTTP: tags, limits, waiting and following before, while and after rows are taken; without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

import tureen
from tests.service.running import RunningServer, events, run_server, run_server_without_fast_path
from tests.service.test_watcher import following, ids, take
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

FORMATS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    """The engine of the served pot: rows are taken when a test says so."""
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("s", "id BIGINT, price DOUBLE, ts TIMESTAMP", "ts")
    yield engine
    engine.close()


@pytest.fixture(params=[run_server, run_server_without_fast_path])
def http(request: pytest.FixtureRequest, engine: ManualEngine) -> Iterator[httpx.Client]:
    """A client of a server that only reads the pot, with and without the fast path."""
    serve: Callable[[tureen.Soup], AbstractContextManager[RunningServer]] = request.param
    with tureen.open(engine.catalog.root, mode="read") as soup, serve(soup) as server, server.client() as client:
        yield client


def row(number: int) -> dict[str, Any]:
    """A row; the times are not in order of arrival."""
    return {"id": number, "price": number / 2, "ts": f"2026-01-01T00:00:{number * 7 % 60:02d}Z"}


def test_304_hides_no_pushed_row(engine: ManualEngine, http: httpx.Client) -> None:
    path = f"/v1/queries/{engine.register('SELECT id FROM s WHERE price > 0')}/result"
    steps: list[Callable[[], object]] = [
        lambda: engine.take("s", 1),
        lambda: engine.take("s"),
        lambda: engine.seal(everything=True),
        engine.compile,
    ]
    for accept in FORMATS:
        tag = http.get(path, headers={"Accept": accept}).headers["etag"]
        for number in range(1, 4):
            engine.append("s", [row(number), row(0)])
            changed = http.get(path, headers={"Accept": accept, "If-None-Match": tag})
            assert changed.status_code == 200
            tag = changed.headers["etag"]
            unchanged = http.get(path, headers={"Accept": accept, "If-None-Match": tag})
            assert (unchanged.status_code, unchanged.content) == (304, b"")
            engine.append("s", [row(0)])
            assert http.get(path, headers={"Accept": accept, "If-None-Match": tag}).status_code == 304
        for step in steps:
            step()
            # The same rows, now in runs.
            assert http.get(path, headers={"Accept": accept, "If-None-Match": tag}).status_code == 304


def test_limits_select_the_same_rows_before_and_after_they_are_taken(engine: ManualEngine, http: httpx.Client) -> None:
    path = f"/v1/queries/{engine.register('SELECT id FROM s')}/result"

    def answers() -> list[Any]:
        bodies = [http.get(path, params={"limit": limit}).json() for limit in range(1, 11)]
        return [(body["rows"], body["truncated"]) for body in bodies]

    engine.append("s", [row(number) for number in (3, 3, 1)])
    engine.append("s", [row(number) for number in (2, 3)])
    engine.push("s", [row(4), row(3)])
    engine.append("s", [row(5), row(3)])
    expected = answers()
    assert [len(rows) for rows, _ in expected] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert [truncated for _, truncated in expected] == [True] * 8 + [False] * 2
    for records in (1, None, None):
        engine.take("s", records)
        engine.seal(everything=True)
        assert answers() == expected


def test_positions_of_pending_rows_are_reached(engine: ManualEngine, http: httpx.Client) -> None:
    path = f"/v1/queries/{engine.register('SELECT id FROM s')}/result"
    positions = []
    for number in range(3):
        positions.append(str(engine.append("s", [row(number)])))
        answer = http.get(path, params={"wait_for": positions, "timeout": 0})
        assert len(answer.json()["rows"]) == number + 1
        positions.append(answer.json()["position"])
        if number == 1:
            engine.take("s")
    assert http.get("/v1/wait", params={"position": positions, "timeout": 0}).status_code == 200
    assert positions == sorted(positions)


@pytest.mark.parametrize("kind", ["query", "template", "feed"])
def test_followers_get_pending_rows_once(engine: ManualEngine, http: httpx.Client, kind: str) -> None:
    if kind == "template":
        templates = Templates(engine.catalog, engine.invoker)
        handle = templates.register("SELECT id FROM s WHERE price > :p", [{"p": 0}, {"p": 0}], None)
        path, copies = f"/v1/templates/{handle}/changes", 2
    else:
        handle = engine.register("SELECT id FROM s WHERE price > 0")
        path, copies = "/v1/changes" if kind == "feed" else f"/v1/queries/{handle}/changes", 1
    seen = []
    with following(http, path) as sent:
        for number in range(1, 7):
            engine.append("s", [row(number), row(0)])
            seen += take(sent, copies)
            if number % 2:
                engine.take("s", 1)
            if number == 4:
                engine.push("s", [row(10)])
                seen += take(sent, copies)
                engine.seal(everything=True)
    expected = [number for number in (1, 2, 3, 4, 10, 5, 6) for _ in range(copies)]
    assert ids(seen) == expected
    for taken in (False, True):
        if taken:
            engine.take("s")
        for index, change in enumerate(seen):
            response = http.get(path, params={"since": change.id, "timeout": 0})
            rest = [json.loads(event.data)["row"]["id"] for event in events(response) if event.event_type == "change"]
            assert rest == expected[index + 1 :]
