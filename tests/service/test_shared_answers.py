"""Shared answers: equal to answers that are computed for each request, and computed once while nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import tureen
from tests.service.running import RunningServer, run_server
from tureen.pot.pot_progress import Moment
from tureen.service.rendering import Rendered, ResponseFormat
from tureen.service.shared_answers import AnswerKey, SharedAnswers
from tureen.testing.manual_engine import ManualEngine

JSON = ResponseFormat("application/json", gzip=False)
POLLED = {"Cache-Control": "max-age=1"}


class Polling:
    """Answers that tell how often they were computed."""

    def __init__(self, max_bytes: int = 100_000) -> None:
        self.now, self.moment = 0.0, Moment(0, 0)
        self.computed = 0
        self.answers = SharedAnswers(lambda: self.moment, max_bytes, lambda: self.now)

    def poll(self, handle: str = "q", principal: str = "p", response_format: ResponseFormat = JSON) -> Any:
        """The body of an answer."""
        key = AnswerKey(principal, handle, response_format)
        return asyncio.run(self.answers.get(key, 1.0, self._invoke)).body

    async def _invoke(self) -> Rendered:
        self.computed += 1
        return Rendered({"ETag": f'W/"{self.computed}"'}, str(self.computed).encode())


def test_answers_are_shared_until_something_happens() -> None:
    polling = Polling()
    assert [polling.poll(), polling.poll()] == [b"1", b"1"]
    polling.moment = Moment(0, 1)
    assert [polling.poll(), polling.poll()] == [b"2", b"2"]
    polling.moment = Moment(1, 1)
    assert [polling.poll(), polling.poll()] == [b"3", b"3"]
    polling.now = 0.99
    assert polling.poll() == b"3"
    polling.now = 1.0
    assert polling.poll() == b"4"


def test_answers_are_those_of_a_principal_a_query_and_a_format() -> None:
    polling = Polling()
    bodies = [
        polling.poll(),
        polling.poll(principal="other"),
        polling.poll("another"),
        polling.poll(response_format=ResponseFormat("text/csv", gzip=False)),
        polling.poll(response_format=ResponseFormat("application/json", gzip=True)),
        polling.poll(response_format=ResponseFormat("application/json", gzip=False, limit=1)),
        polling.poll(response_format=ResponseFormat("application/json", gzip=False, now="2026-01-01")),
    ]
    assert bodies == [str(number).encode() for number in range(1, 8)]


def test_what_happens_meanwhile_may_not_be_in_an_answer() -> None:
    polling = Polling()

    async def invoke() -> Rendered:
        polling.moment = Moment(0, 1)
        return Rendered({}, b"before the push")

    assert asyncio.run(polling.answers.get(AnswerKey("p", "q", JSON), 1.0, invoke)).body == b"before the push"
    assert polling.poll() == b"1"


def test_chunks_and_large_answers_are_not_kept() -> None:
    polling = Polling(max_bytes=3_000)
    key = AnswerKey("p", "q", JSON)

    async def chunked() -> Rendered:
        return Rendered({}, iter([b"chunk"]))

    async def large() -> Rendered:
        return Rendered({}, b"x" * 3_000)

    for invoke in (chunked, large):
        assert asyncio.run(polling.answers.get(key, 1.0, invoke)).body != b""
        assert len(polling.answers._known) == 0
    for number in range(10):
        polling.poll(f"q{number}")
    assert len(polling.answers._known) == 2


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    """The engine of the served pot."""
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("s", "id BIGINT, ts TIMESTAMP", "ts", clock="stream")
    yield engine
    engine.close()


@pytest.fixture
def server(engine: ManualEngine) -> Iterator[RunningServer]:
    """A server that only reads the pot, and for which no time passes."""
    with tureen.open(engine.catalog.root, mode="read") as soup, run_server(soup, page=False) as server:
        server.service.answers._clock = lambda: 0.0
        yield server


def rows_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    rows: list[dict[str, Any]] = response.json()["rows"]
    return rows


def test_polled_answers_equal_others(
    engine: ManualEngine, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = engine.register("SELECT id FROM s BEGIN NOW - 3 SECONDS END NOW")
    path = f"/v1/queries/{query}/result"
    invoked = []
    invoke = server.service.invoke

    async def counted(*arguments: Any) -> Rendered:
        invoked.append(arguments)
        return await invoke(*arguments)

    monkeypatch.setattr(server.service, "invoke", counted)
    with server.client() as client:
        for number in range(8):
            action = (engine.append, engine.append, engine.push)[number % 3]
            action("s", [{"id": number, "ts": f"2026-01-01T00:00:{number:02d}Z"}])
            invoked.clear()
            polled = [client.get(path, headers=POLLED) for _ in range(3)]
            assert len(invoked) == 1
            assert [rows_of(response) for response in polled] == 3 * [rows_of(client.get(path))]
            tag = polled[0].headers["ETag"]
            unchanged = client.get(path, headers={**POLLED, "If-None-Match": tag})
            assert (unchanged.status_code, unchanged.content, len(invoked)) == (304, b"", 2)
            plain = client.get(path, headers={"If-None-Match": tag})
            assert plain.status_code == 304
            assert dict(unchanged.headers) | {"x-request-id": ""} == dict(plain.headers) | {"x-request-id": ""}
        engine.take("s")
        assert rows_of(client.get(path, headers=POLLED)) == rows_of(client.get(path))
        limited = client.get(path, params={"limit": 1}, headers=POLLED)
        assert (len(rows_of(limited)), limited.json()["truncated"]) == (1, True)
        engine.unregister(query)
        assert client.get(path, headers=POLLED).status_code == 404


def test_polled_answers_are_those_of_their_owner(engine: ManualEngine, server: RunningServer) -> None:
    path = f"/v1/queries/{engine.register('SELECT id FROM s')}/result"
    with server.client("both") as owner, server.client("other") as other, server.client("write") as writer:
        assert owner.get(path, headers=POLLED).status_code == 200
        assert other.get(path, headers=POLLED).status_code == 404
        assert writer.get(path, headers=POLLED).status_code == 403
