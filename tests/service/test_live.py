"""Live results: followed, broken off, and taken up again, of a query, of a template, and of all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.service.running import Event, Running, events

Push = Callable[..., str]


@contextmanager
def following(http: httpx.Client, path: str, since: str | None = None) -> Iterator[Iterator[Event]]:
    params = {"timeout": "30"} if since is None else {"since": since, "timeout": "30"}
    with http.stream("GET", path, params=params) as response:
        if response.status_code != 200:
            response.read()
            raise AssertionError(response.text)
        assert response.headers["content-type"].startswith("text/event-stream")
        found = events(response)
        assert next(found).kind == "position"
        yield found


def ids(some: list[Event]) -> list[int]:
    return [json.loads(one.data)["row"]["id"] for one in some]


def take(found: Iterator[Event], count: int) -> list[Event]:
    some = [next(found) for _ in range(count)]
    assert {one.kind for one in some} == {"change"}
    return some


def test_a_query_is_followed_and_taken_up_again(http: httpx.Client, stream: str, push: Push) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} WHERE price > 1"}).json()["id"]
    path = f"/v1/queries/{handle}/changes"
    with following(http, path) as found:
        push((1, "A", 2.0), (2, "A", 0.0), (3, "A", 3.0))
        some = take(found, 2)
        assert ids(some) == [1, 3]
    push((4, "A", 2.0))
    # From the middle of a commit on, though the connection was cut after it.
    with following(http, path, some[0].id) as found:
        assert ids(take(found, 2)) == [3, 4]
        push((5, "A", 2.0))
        assert ids(take(found, 1)) == [5]


def test_a_browser_comes_back_by_its_header(http: httpx.Client, stream: str, push: Push) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    path = f"/v1/queries/{handle}/changes"
    with following(http, path) as found:
        push((1, "A", 2.0), (2, "A", 0.0))
        some = take(found, 2)
    headers = {"Last-Event-ID": str(some[0].id)}
    with http.stream("GET", path, params={"since": "nonsense", "timeout": "30"}, headers=headers) as response:
        found = events(response)
        assert next(found).id == some[0].id
        assert ids(take(found, 1)) == [2]


def test_a_template_is_followed(http: httpx.Client, stream: str, push: Push) -> None:
    sql = f"SELECT id FROM {stream} WHERE sym = :sym AND price > :p"
    params = [{"sym": "A", "p": 1.0}, {"sym": "A", "p": 5.0}, {"sym": "B", "p": 0.0}]
    made = http.post("/v1/templates", json={"sql": sql, "params": params}).json()
    assert made["queries"] == 3
    path = f"/v1/templates/{made['id']}/changes"
    with following(http, path) as found:
        push((1, "A", 9.0), (2, "B", 1.0))
        some = take(found, 3)
    told = [(json.loads(one.data)["query"].rpartition(".")[2], json.loads(one.data)["row"]["id"]) for one in some]
    assert told == [("0", 1), ("1", 1), ("2", 2)]
    with following(http, path, some[0].id) as found:
        assert [one.data for one in take(found, 2)] == [one.data for one in some[1:]]


def test_one_feed_over_all_queries_and_streams(served: Running, http: httpx.Client) -> None:
    with served.client("other") as theirs:
        for name in ("feed_a", "feed_b"):
            assert theirs.post("/v1/streams", json={"name": name, "schema": "id BIGINT"}).status_code == 201
        one = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_a WHERE id > 0"}).json()["id"]
        two = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_b"}).json()["id"]
        same = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_a"}).json()["id"]
        theirs.post("/v1/queries", json={"sql": "SELECT count(*) AS n FROM feed_a"})
        many = theirs.post(
            "/v1/templates", json={"sql": "SELECT id FROM feed_b WHERE id = :n", "params": [{"n": 7}, {"n": 8}]}
        ).json()["id"]
        # Another principal's query on the same stream is not told.
        http.post("/v1/queries", json={"sql": "SELECT id, 'mine' AS whose FROM feed_a"})
        with following(theirs, "/v1/changes") as found:
            theirs.post("/v1/streams/feed_a/rows", json=[{"id": 0}, {"id": 1}])
            first = take(found, 3)
            theirs.post("/v1/streams/feed_b/rows", json=[{"id": 7}])
            second = take(found, 2)
        told = [(json.loads(event.data)["query"], json.loads(event.data)["row"]["id"]) for event in first + second]
        assert told[0] == (same, 0)
        assert set(told[1:3]) == {(one, 1), (same, 1)}
        assert set(told[3:]) == {(two, 7), (f"{many}.0", 7)}
        # From every place of it, the rest comes: nothing is missed and nothing comes twice.
        for place, event in enumerate(first + second):
            rest = (first + second)[place + 1 :]
            with following(theirs, "/v1/changes", event.id) as found:
                assert [one.data for one in take(found, len(rest))] == [one.data for one in rest] if rest else True
        late = theirs.post("/v1/streams", json={"name": "feed_c", "schema": "id BIGINT"})
        assert late.status_code == 201
        three = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_c"}).json()["id"]
        theirs.post("/v1/streams/feed_c/rows", json=[{"id": 3}])
        with following(theirs, "/v1/changes", second[-1].id) as found:
            (event,) = take(found, 1)
        assert json.loads(event.data) == {"query": three, "row": {"id": 3}}


def test_a_feed_is_followed_in_python(served: Running) -> None:
    soup = served.soup.acting_for("a follower")
    soup.create_stream("followed", "id BIGINT")
    query = soup.register("SELECT id FROM followed")
    start = soup.looks.all(None).position()
    soup.wait(soup.push("followed", [{"id": 1}, {"id": 2}]))
    found = list(soup.feed(since=start, timeout=0))
    assert [(change.query, change.row) for change in found] == [(query.id, {"id": 1}), (query.id, {"id": 2})]
    assert [change.row for change in soup.feed(since=found[0].position, timeout=0)] == [{"id": 2}]


def test_what_cannot_be_followed_says_so(http: httpx.Client, stream: str, push: Push) -> None:
    count = http.post("/v1/queries", json={"sql": f"SELECT count(*) AS n FROM {stream}"}).json()["id"]
    refused = http.get(f"/v1/queries/{count}/changes")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported")
    assert http.get("/v1/queries/nobody/changes").status_code == 404
    assert http.get(f"/v1/queries/{count}/changes?since=nonsense").status_code == 400
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    with following(http, f"/v1/queries/{handle}/changes") as found:
        assert http.delete(f"/v1/queries/{handle}").status_code == 204
        push((1, "A", 1.0))
        last = next(found)
    assert (last.kind, json.loads(last.data)["error"]["code"]) == ("error", "unknown_query")


def test_followers_get_heartbeats_and_hold_no_thread(served: Running, http: httpx.Client, stream: str) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    with http.stream("GET", f"/v1/queries/{handle}/changes") as response:
        lines = response.iter_lines()
        assert any(line == ": still here" for line in lines)
    assert served.service.settings.heartbeat < 1


@pytest.mark.parametrize("since", ["1", "~", "000000000000001~1.1", "000000000000001.000001.000000000000000"])
def test_a_position_that_is_none_of_the_feed(http: httpx.Client, since: str) -> None:
    refused = http.get("/v1/changes", params={"since": since})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "error")
