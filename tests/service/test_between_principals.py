"""Isolation: no principal can learn about, or interfere with, the objects of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.running import RunningServer, events, run_server
from tureen.position import PushPosition, parse_position


def row(number: int) -> dict[str, Any]:
    return {"id": number, "sym": "A", "price": 1.0, "ts": "2026-01-01T00:00:00Z"}


@pytest.fixture
def other(served: RunningServer) -> Iterator[httpx.Client]:
    """A client of another principal with the scopes read and write."""
    with served.client("other") as client:
        yield client


def test_status_hides_queries_of_others(http: httpx.Client, other: httpx.Client, stream: str) -> None:
    before = other.get("/v1/status").json()
    http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} WHERE price > 4242", "materialize": True})
    # The position reveals that a commit happened, as that of every answer does.
    after = other.get("/v1/status").json()
    assert after == before | {"position": after["position"]}
    own = other.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} WHERE price > 4242"}).json()["id"]
    assert other.get("/v1/status").json()["queries"] == before["queries"] + 1
    assert "clauses" not in before
    plan = other.get(f"/v1/queries/{own}/explain").json()
    assert not {"clause", "access", "why", "materialized"} & plan.keys()
    assert set(plan["tuples_by_path"]) == {"indexed", "tail"}
    assert http.get("/v1/status").json()["clauses"] >= 1, "an admin sees all"
    assert other.get("/metrics").status_code == 403


def end_of(position: str) -> int:
    """The end of a push in its stream's log."""
    pushed = parse_position(position)
    assert isinstance(pushed, PushPosition)
    return pushed.end


def test_idempotency_keys_are_scoped_to_the_principal(http: httpx.Client, other: httpx.Client, stream: str) -> None:
    def push(client: httpx.Client, number: int) -> httpx.Response:
        rows = [row(number)]
        return client.post(f"/v1/streams/{stream}/rows", json=rows, headers={"Idempotency-Key": "1"})

    first = push(http, 1)
    assert first.status_code == 202
    theirs = push(other, 2)
    assert theirs.status_code == 202
    assert theirs.json()["position"] != first.json()["position"]
    again = push(http, 1).json()
    assert (again["added"], end_of(again["position"])) == (0, end_of(first.json()["position"]))
    assert push(http, 3).status_code == 409
    http.get("/v1/wait", params={"position": theirs.json()["position"]})
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    assert sorted(row["id"] for row in http.get(f"/v1/queries/{handle}/result").json()["rows"]) == [1, 2]


def test_revoking_a_token_ends_its_followers(served: RunningServer, http: httpx.Client, stream: str) -> None:
    token = http.post("/v1/tokens", json={"principal": "local", "scopes": ["read"]}).json()
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    with (
        served.client(token["token"]) as client,
        client.stream("GET", f"/v1/queries/{handle}/changes", params={"timeout": "30"}) as response,
    ):
        sent = events(response)
        assert next(sent).event_type == "position"
        assert http.delete(f"/v1/tokens/{token['id']}").status_code == 204
        http.post(f"/v1/streams/{stream}/rows", json=[row(1)])
        last = list(sent)[-1]
        assert (last.event_type, json.loads(last.data)["error"]["code"]) == ("error", "unauthorized")


def test_json_numbers_of_decimal_columns_are_exact(http: httpx.Client) -> None:
    http.post("/v1/streams", json={"name": "exact", "schema": "m DECIMAL(20,4)"})
    texts = ["12345678901234.5678", "0.1", "-7"]
    body = "[" + ",".join(f'{{"m": {text}}}' for text in texts) + "]"
    lines = "\n".join(f'{{"m": {text}}}' for text in texts)
    for media_type, content in (("application/json", body), ("application/x-ndjson", lines)):
        pushed = http.post("/v1/streams/exact/rows", content=content, headers={"Content-Type": media_type})
        assert pushed.status_code == 202, pushed.text
    http.get("/v1/wait", params={"position": pushed.json()["position"]})
    handle = http.post("/v1/queries", json={"sql": "SELECT m FROM exact"}).json()["id"]
    rows = http.get(f"/v1/queries/{handle}/result").json()["rows"]
    assert sorted(str(row["m"]) for row in rows) == sorted(2 * ["12345678901234.5678", "0.1000", "-7.0000"])
    for bad in ('[{"m": NaN}]', "[" * 100_000, b'[{"m": "\xff"}]'):
        headers = {"Content-Type": "application/json"}
        assert http.post("/v1/streams/exact/rows", content=bad, headers=headers).status_code == 400
    http.delete("/v1/streams/exact")


def test_large_json_is_refused_before_parsing(served: RunningServer, stream: str) -> None:
    with run_server(served.soup, max_json_bytes=1000, max_push_rows=10) as small, small.client() as client:
        for rows in (json.dumps([{}] * 21), json.dumps([row(1) | {"sym": "x" * 1000}])):
            headers = {"Content-Type": "application/json"}
            refused = client.post(f"/v1/streams/{stream}/rows", content=rows, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("path", ["streams", "queries"])
def test_names_with_a_slash_are_refused(http: httpx.Client, stream: str, path: str) -> None:
    fields = {"schema": "id INT"} if path == "streams" else {"sql": f"SELECT id FROM {stream}"}
    refused = http.post(f"/v1/{path}", json={"name": "a/b", **fields})
    assert (refused.status_code, "no slash" in refused.json()["error"]["hint"]) == (400, True)


def test_trailing_slash_is_not_found(http: httpx.Client) -> None:
    response = http.get("/v1/queries/")
    assert response.status_code == 404
    assert response.json()["error"]["message"]


def test_source_error_is_reported_by_its_stream_only(served: RunningServer, tmp_path: Path) -> None:
    source = {"format": "json", "options": {"path": str(tmp_path / "missing")}}
    body = {"name": "broken_source", "schema": "a INT", "source": source}
    with served.client() as http, served.client("both") as plain, served.client(None) as nobody:
        assert http.post("/v1/streams", json=body).status_code == 201
        while http.get("/v1/streams/broken_source").json()["error"] is None:
            assert http.post("/v1/sql", json={"sql": "SHOW STREAMS"}).status_code == 200
        assert "missing" in http.get("/v1/streams/broken_source").json()["error"]
        assert "missing" in http.get("/v1/status").json()["streams"]["broken_source"]["error"]
        for path in ("/v1/streams/broken_source", "/v1/status", "/v1/streams?limit=1000"):
            visible = plain.get(path).text
            assert "the source cannot be read" in visible
            assert "missing" not in visible
        assert (http.get("/v1/status").json()["error"], nobody.get("/healthz").status_code) == (None, 200)
        assert http.delete("/v1/streams/broken_source").status_code == 204
        while served.soup._pot.source_errors():
            assert nobody.get("/healthz").status_code == 200
        assert "missing" not in http.get("/v1/status").text


def test_healthz_answers_head_requests(served: RunningServer) -> None:
    with served.client(None) as client:
        assert client.head("/healthz").status_code == 200
