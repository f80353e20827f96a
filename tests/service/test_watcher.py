"""Following the changes of a query, of a template and of all queries, and resuming after a disconnect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.service.running import RunningServer, SentEvent, events
from tureen.pot.pot_progress import Moment, PotProgress
from tureen.service import watcher as watcher_module
from tureen.service.watcher import ProgressWatcher
from tureen.testing.manual_engine import ManualEngine

Push = Callable[..., str]


@contextmanager
def following(http: httpx.Client, path: str, since: str | None = None, **chosen: str) -> Iterator[Iterator[SentEvent]]:
    params = {"timeout": "30", **chosen} if since is None else {"since": since, "timeout": "30"}
    with http.stream("GET", path, params=params) as response:
        if response.status_code != 200:
            response.read()
            raise AssertionError(response.text)
        assert response.headers["content-type"].startswith("text/event-stream")
        sent = events(response)
        assert next(sent).event_type == "position"
        yield sent


def ids(changes: list[SentEvent]) -> list[int]:
    return [json.loads(change.data)["row"]["id"] for change in changes]


def take(sent: Iterator[SentEvent], count: int) -> list[SentEvent]:
    changes = [next(sent) for _ in range(count)]
    assert {change.event_type for change in changes} == {"change"}
    return changes


def test_following_a_query_can_be_resumed(http: httpx.Client, stream: str, push: Push) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} WHERE price > 1"}).json()["id"]
    path = f"/v1/queries/{handle}/changes"
    with following(http, path) as sent:
        push((1, "A", 2.0), (2, "A", 0.0), (3, "A", 3.0))
        changes = take(sent, 2)
        assert ids(changes) == [1, 3]
    push((4, "A", 2.0))
    # Resume in the middle of a commit.
    with following(http, path, changes[0].id) as sent:
        assert ids(take(sent, 2)) == [3, 4]
        push((5, "A", 2.0))
        assert ids(take(sent, 1)) == [5]


def test_many_followers_of_different_queries(http: httpx.Client, stream: str, push: Push) -> None:
    sql = f"SELECT id FROM {stream} WHERE id = "
    handles = [http.post("/v1/queries", json={"sql": f"{sql}{number}"}).json()["id"] for number in range(6)]
    with ExitStack() as stack:
        opened = [stack.enter_context(following(http, f"/v1/queries/{handle}/changes")) for handle in handles]
        for number in (2, 4, 2, 5):
            push((number, "A", 1.0))
        assert [ids(take(opened[number], count)) for number, count in ((2, 2), (4, 1), (5, 1))] == [[2, 2], [4], [5]]
        push(*((number, "A", 1.0) for number in range(6)))
        assert [ids(take(sent, 1)) for sent in opened] == [[number] for number in range(6)]
        assert http.delete(f"/v1/queries/{handles[1]}").status_code == 204
        assert next(opened[1]).event_type == "error"


def test_only_followers_with_changes_are_woken(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT")

    async def check() -> None:
        watcher = ProgressWatcher(PotProgress(engine.catalog), lambda: None, lambda: {"a"})
        watcher.start()
        version = watcher.version
        with watcher.following("a"), watcher.following("b"):
            waiting = {
                name: asyncio.create_task(watcher.wait_for_news(version, 60, clause))
                for name, clause in (("a", "a"), ("b", "b"), ("any", None))
            }
            await asyncio.sleep(0)
            engine.append("s", [{"n": 1}])
            done, pending = await asyncio.wait([waiting["a"], waiting["any"]], timeout=30)
            assert len(done) == 2
            assert not pending
            assert not waiting["b"].done()
            # A follower that was reading while its clause was matched is not kept waiting.
            assert await watcher.wait_for_news(watcher.version, 60, "a", watcher.matches - 1)
            assert not await watcher.wait_for_news(watcher.version, 0.01, "a", watcher.matches)
            watcher.close()
            assert not await waiting["b"]

    asyncio.run(check())


def test_a_clause_with_many_followers_keeps_no_others_waiting(engine: ManualEngine) -> None:
    engine.create_stream("s", "n INT")
    woken: list[str] = []

    async def wait(watcher: ProgressWatcher, clause: str | None) -> None:
        assert await watcher.wait_for_news(0, 60, clause)
        woken.append(str(clause))

    async def check() -> None:
        watcher = ProgressWatcher(PotProgress(engine.catalog), lambda: None, lambda: {"many", "few"})
        watcher.start()
        with watcher.following("many"), watcher.following("few"):
            clauses = [*["many"] * 100, *["few"] * 3, None]
            waiting = [asyncio.create_task(wait(watcher, clause)) for clause in clauses]
            await asyncio.sleep(0)
            engine.append("s", [{"n": 1}])
            await asyncio.gather(*waiting)
        watcher.close()

    asyncio.run(check())
    assert woken == ["None", *["few"] * 3, *["many"] * 100]


def test_a_pot_is_checked_seldom_while_nobody_waits(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "IDLE_SECONDS", 1000)
    progress, commits, is_expected = PotProgress(engine.catalog), list[int](), list[bool]()
    checks = counted(progress, monkeypatch)

    async def check() -> None:
        watcher = ProgressWatcher(progress, lambda: commits.append(1), tuple, lambda: bool(is_expected))
        watcher.start()
        await asyncio.sleep(0.1)
        assert len(checks) == 1
        # A commit that nobody expects is noticed by the first who waits.
        engine.create_stream("s", "n INT")
        assert await watcher.wait_for_news(watcher.version, 30)
        await asyncio.sleep(0.1)
        assert len(commits) == 1
        is_expected.append(True)
        watcher.hurry()
        engine.create_stream("t", "n INT")
        while len(commits) < 2:
            await asyncio.sleep(0.01)
        watcher.close()

    asyncio.run(check())


def counted(progress: PotProgress, monkeypatch: pytest.MonkeyPatch) -> list[Moment]:
    """What the checks of a pot's progress return from now on."""
    moments: list[Moment] = []
    now = progress.now

    def counting_now() -> Moment:
        moments.append(now())
        return moments[-1]

    monkeypatch.setattr(progress, "now", counting_now)
    return moments


def test_last_event_id_takes_precedence_over_since(http: httpx.Client, stream: str, push: Push) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    path = f"/v1/queries/{handle}/changes"
    with following(http, path) as sent:
        push((1, "A", 2.0), (2, "A", 0.0))
        changes = take(sent, 2)
    headers = {"Last-Event-ID": str(changes[0].id)}
    with http.stream("GET", path, params={"since": "nonsense", "timeout": "30"}, headers=headers) as response:
        sent = events(response)
        assert next(sent).id == changes[0].id
        assert ids(take(sent, 1)) == [2]


def test_following_groups(http: httpx.Client, stream: str, push: Push) -> None:
    sql = f"SELECT sym, max(price) AS p FROM {stream} GROUP BY sym HAVING max(price) < 30"
    path = f"/v1/queries/{http.post('/v1/queries', json={'sql': sql}).json()['id']}/changes"
    data = []
    with following(http, path) as sent, following(http, path, on="turn") as turns:
        for price in (10.0, 20.0, 40.0):
            push((1, "A", price))
            (change,) = take(sent, 1)
            data.append({**json.loads(change.data), "query": ""})
        kinds = [json.loads(change.data)["kind"] for change in take(turns, 2)]
    low, high = {"sym": "A", "p": 10.0}, {"sym": "A", "p": 20.0}
    assert data == [
        {"query": "", "kind": "insert", "row": low},
        {"query": "", "kind": "update", "row": high, "before": low},
        {"query": "", "kind": "delete", "row": high, "before": high},
    ]
    assert kinds == ["insert", "delete"]
    for parameters in ("on=never", "hold=5 seconds", "on=turn&hold=soon"):
        assert http.get(f"{path}?{parameters}").status_code in (400, 422)


def test_following_a_template(http: httpx.Client, stream: str, push: Push) -> None:
    sql = f"SELECT id FROM {stream} WHERE sym = :sym AND price > :p"
    params = [{"sym": "A", "p": 1.0}, {"sym": "A", "p": 5.0}, {"sym": "B", "p": 0.0}]
    template = http.post("/v1/templates", json={"sql": sql, "params": params}).json()
    assert template["queries"] == 3
    path = f"/v1/templates/{template['id']}/changes"
    with following(http, path) as sent:
        push((1, "A", 9.0), (2, "B", 1.0))
        changes = take(sent, 3)
    data = [json.loads(change.data) for change in changes]
    assert [(change["query"].rpartition(".")[2], change["row"]["id"]) for change in data] == [
        ("0", 1),
        ("1", 1),
        ("2", 2),
    ]
    with following(http, path, changes[0].id) as sent:
        assert [change.data for change in take(sent, 2)] == [change.data for change in changes[1:]]


def test_following_all_queries_and_streams(served: RunningServer, http: httpx.Client) -> None:
    with served.client("other") as theirs:
        for name in ("feed_a", "feed_b"):
            assert theirs.post("/v1/streams", json={"name": name, "schema": "id BIGINT"}).status_code == 201
        positive = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_a WHERE id > 0"}).json()["id"]
        all_b = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_b"}).json()["id"]
        all_a = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_a"}).json()["id"]
        template = theirs.post(
            "/v1/templates", json={"sql": "SELECT id FROM feed_b WHERE id = :n", "params": [{"n": 7}, {"n": 8}]}
        ).json()["id"]
        # Changes of another principal's query on the same stream are not sent.
        http.post("/v1/queries", json={"sql": "SELECT id, 'mine' AS whose FROM feed_a"})
        with following(theirs, "/v1/changes") as sent:
            theirs.post("/v1/streams/feed_a/rows", json=[{"id": 0}, {"id": 1}])
            changes = take(sent, 3)
            theirs.post("/v1/streams/feed_b/rows", json=[{"id": 7}])
            changes += take(sent, 2)
        matches = [(json.loads(change.data)["query"], json.loads(change.data)["row"]["id"]) for change in changes]
        assert matches[0] == (all_a, 0)
        assert set(matches[1:3]) == {(positive, 1), (all_a, 1)}
        assert set(matches[3:]) == {(all_b, 7), (f"{template}.0", 7)}
        # Resuming after any event sends the following events, each once.
        for index, change in enumerate(changes[:-1], 1):
            rest = changes[index:]
            with following(theirs, "/v1/changes", change.id) as sent:
                assert [event.data for event in take(sent, len(rest))] == [event.data for event in rest]
        assert theirs.post("/v1/streams", json={"name": "feed_c", "schema": "id BIGINT"}).status_code == 201
        all_c = theirs.post("/v1/queries", json={"sql": "SELECT id FROM feed_c"}).json()["id"]
        theirs.post("/v1/streams/feed_c/rows", json=[{"id": 3}])
        with following(theirs, "/v1/changes", changes[-1].id) as sent:
            (change,) = take(sent, 1)
        assert json.loads(change.data) == {"query": all_c, "kind": "insert", "row": {"id": 3}}


def test_feed_of_an_embedded_pot(served: RunningServer) -> None:
    soup = served.service.soup.acting_for("a follower")
    soup.create_stream("followed", "id BIGINT")
    query = soup.register("SELECT id FROM followed")
    start = soup.calls.change_reader.all(None).position()
    soup.wait(soup.push("followed", [{"id": 1}, {"id": 2}]))
    changes = list(soup.feed(since=start, timeout=0))
    assert [(change.query, change.row) for change in changes] == [(query.id, {"id": 1}), (query.id, {"id": 2})]
    assert [change.row for change in soup.feed(since=changes[0].position, timeout=0)] == [{"id": 2}]


def test_errors_of_following(http: httpx.Client, stream: str, push: Push) -> None:
    count = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} LIMIT 3"}).json()["id"]
    refused = http.get(f"/v1/queries/{count}/changes")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported")
    assert http.get("/v1/queries/nobody/changes").status_code == 404
    assert http.get(f"/v1/queries/{count}/changes?since=nonsense").status_code == 400
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    with following(http, f"/v1/queries/{handle}/changes") as sent:
        assert http.delete(f"/v1/queries/{handle}").status_code == 204
        push((1, "A", 1.0))
        last = next(sent)
    assert (last.event_type, json.loads(last.data)["error"]["code"]) == ("error", "unknown_query")


def test_followers_get_heartbeats(served: RunningServer, http: httpx.Client, stream: str) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()["id"]
    with http.stream("GET", f"/v1/queries/{handle}/changes") as response:
        lines = response.iter_lines()
        assert any(line == ": still here" for line in lines)
    assert served.service.settings.heartbeat < 1


@pytest.mark.parametrize("since", ["1", "~", "000000000000001-1", "000000000000001.000001.000000000000400"])
def test_invalid_positions_of_the_feed_are_refused(http: httpx.Client, since: str) -> None:
    refused = http.get("/v1/changes", params={"since": since})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "error")


def test_many_followers_of_one_query_read_together(http: httpx.Client, stream: str, push: Push) -> None:
    handle = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream} WHERE price > 1"}).json()["id"]
    path = f"/v1/queries/{handle}/changes"
    with ExitStack() as stack:
        opened = [stack.enter_context(following(http, path)) for _ in range(12)]
        push((1, "A", 2.0), (2, "A", 0.0))
        first = [take(sent, 1) for sent in opened]
        assert {(change.id, change.data) for changes in first for change in changes} == {
            (first[0][0].id, first[0][0].data)
        }
        # One that left, and one that resumes before the last change, disturb nobody.
        opened[0].close()  # type: ignore[attr-defined]
        late = stack.enter_context(following(http, path, since=None))
        push((3, "A", 2.0), (4, "A", 3.0))
        assert [ids(take(sent, 2)) for sent in (*opened[1:], late)] == [[3, 4]] * 12
