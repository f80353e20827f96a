"""Queries over streams of other servers are answered as they are where the streams live."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.federation.servers_in_process import Site
from tureen.errors import DuplicateName, TureenError, UnknownStream, Unsupported
from tureen.federation.needs import Need
from tureen.pot.links import list_links
from tureen.pot.peers import remove_peer, unshare_stream
from tureen.pot.streams import drop_stream, find_stream, visible_streams
from tureen.results.answer import Answer
from tureen.testing.manual_engine import ManualClock

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, v DOUBLE, word STRING, ts TIMESTAMP"

QUERIES = (
    "SELECT * FROM s",
    "SELECT v FROM s WHERE k = 1",
    "SELECT k, v FROM s WHERE v > 3 AND v <= 9 OR k IS NULL BEGIN NOW - 5 SECONDS END NOW",
    "SELECT k, count(*) AS n, avg(v) AS mean FROM s WHERE k <> 2 GROUP BY k BEGIN NOW - 8 SECONDS END NOW",
    "SELECT word FROM s WHERE word LIKE 'a%' AND sqrt(abs(v)) > 1 ORDER BY v, ts",
    "SELECT v FROM s WHERE k = 0 BEGIN NOW - 3 ROWS END NOW",
    "SELECT k, sum(v) AS total FROM s [TUMBLE 3 SECONDS] WHERE k < 2 GROUP BY k",
    "SELECT a.v, b.v AS other FROM s a JOIN s b ON a.k = b.k WHERE a.v < b.v AND a.k = 1 BEGIN NOW - 4 SECONDS END NOW",
)
"""Selections, windows, groups, factors that cannot be sent, windows and steps of rows, and a join."""


def row(number: int) -> dict[str, Any]:
    """Tuples whose times are not in the order of arrival."""
    word = ("apple", "bread", None)[number % 3]
    moment = BASE + timedelta(seconds=number - 4 * (number % 3 == 1))
    return {"k": (0, 1, 2, None)[number % 4], "v": number / 2, "word": word, "ts": moment}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(BASE + timedelta(minutes=1))


@pytest.fixture
def sites(tmp_path: Path, clock: ManualClock) -> Iterator[dict[str, Site]]:
    """Three servers: alpha has a stream, which it shares with beta."""
    sites: dict[str, Site] = {}
    for name in ("alpha", "beta", "gamma"):
        Site(name, tmp_path, sites, clock)
    sites["alpha"].engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    sites["beta"].receive_from(sites["alpha"], "s")
    yield sites
    for site in sites.values():
        site.close()


@pytest.fixture
def alpha(sites: dict[str, Site]) -> Site:
    return sites["alpha"]


@pytest.fixture
def beta(sites: dict[str, Site]) -> Site:
    return sites["beta"]


def assert_same(expected: Answer, received: Answer) -> None:
    assert received.note is None
    assert received.table.to_pylist() == expected.table.to_pylist()
    assert received.table.schema == expected.table.schema
    assert received.window == expected.window
    assert received.complete == expected.complete


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(1, 6)),
        st.tuples(st.just("register"), st.integers(0, len(QUERIES) - 1)),
        st.tuples(st.just("unregister"), st.integers(0, 9)),
        st.tuples(
            st.sampled_from(["take", "upkeep", "take at beta", "upkeep of beta", "restart", "restart alpha", "miss"]),
            st.just(0),
        ),
    ),
    min_size=4,
    max_size=14,
)


@example_settings(12)
@given(STEPS, st.sampled_from([("stream", None), ("wall", None), ("stream", "6 seconds"), ("wall", "30 seconds")]))
def test_answers_are_those_of_the_home(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], kind: tuple[str, str | None]
) -> None:
    sites: dict[str, Site] = {}
    root, clock = tmp_path_factory.mktemp("sites"), ManualClock(BASE + timedelta(seconds=20))
    alpha, beta = (Site(name, root, sites, clock) for name in ("alpha", "beta"))
    alpha.engine.create_stream("s", SCHEMA, time="ts", clock=kind[0], retain=kind[1])
    beta.receive_from(alpha, "s")
    standing: list[tuple[str, str]] = []
    pushed = 0
    for step, number in [("push", 3), *steps]:
        if step == "push":
            alpha.push("s", [row(each) for each in range(pushed, pushed + number)])
            pushed += number
        elif step == "register":
            eager = len(standing) % 2 == 1
            pair = (site.register(QUERIES[number], materialize=eager) for site in (alpha, beta))
            standing.append((next(pair), next(pair)))
        elif step == "unregister" and standing:
            at_home, received = standing.pop(number % len(standing))
            alpha.unregister(at_home)
            beta.unregister(received)
            beta.federation.sweep()
        elif step == "take":
            alpha.engine.take_everything()
        elif step == "upkeep":
            alpha.upkeep()
        elif step == "take at beta":
            beta.engine.take_everything()
        elif step == "upkeep of beta":
            beta.upkeep()
        elif step == "restart":
            beta.restart()
        elif step == "restart alpha":
            alpha.restart()
        if step != "miss":
            beta.federation.step()
            for at_home, received in standing:
                assert_same(alpha.invoke(at_home), beta.invoke(received))
    used = len({link.id for link in beta.federation.links()})
    assert used <= len(standing) * 2
    for site in sites.values():
        site.close()


def test_one_replica_serves_queries_that_it_covers(alpha: Site, beta: Site) -> None:
    beta.register("SELECT k, v FROM s WHERE v > 1")
    (link,) = beta.federation.links()
    assert link.flow == "SELECT `k`, `v`, `ts` FROM `s` WHERE (`v` > 1.0)"
    beta.register("SELECT k FROM s WHERE v > 2")
    assert len(beta.federation.links()) == 1
    beta.register("SELECT word FROM s WHERE v > 2")
    assert len(beta.federation.links()) == 2
    alpha.push("s", [row(number) for number in range(10)])
    beta.federation.step()
    assert [state.rows for state in beta.federation.link_states()] == [7, 5]


def test_what_nobody_uses_is_dropped(beta: Site) -> None:
    handle = beta.register("SELECT v FROM s WHERE k = 1")
    assert beta.federation.sweep() == []
    beta.unregister(handle)
    assert len(beta.federation.sweep()) == 1
    assert beta.federation.links() == []
    assert beta.federation.link_states() == []


def test_a_claimed_replica_is_kept(beta: Site) -> None:
    stream = beta.federation.find_remote("s")
    assert stream is not None
    link = beta.federation.replica_of(Need(stream))
    assert beta.federation.sweep() == []
    beta.federation.release(link.id)
    assert [dropped.id for dropped in beta.federation.sweep()] == [link.id]


def test_a_peer_that_is_away_shows_in_answers(alpha: Site, beta: Site) -> None:
    alpha.push("s", [row(0)])
    handle = beta.register("SELECT v FROM s")
    note = beta.invoke(handle).note
    assert note is not None
    assert "still being received from 'alpha'" in note
    beta.federation.step()
    assert beta.invoke(handle).complete
    alpha.is_away = True
    beta.federation.step()
    answer = beta.invoke(handle)
    assert (len(answer), answer.complete) == (1, False)
    assert answer.note == (
        "stream 's' is not up to date: 'alpha' has been away since 2026-01-01T00:01:00+00:00 (no answer from 'alpha')"
    )
    alpha.is_away = False
    alpha.push("s", [row(1)])
    beta.federation.step()
    answer = beta.invoke(handle)
    assert (len(answer), answer.complete, answer.note) == (2, True, None)


def test_withdrawn_streams_and_removed_peers_stop_links(alpha: Site, beta: Site) -> None:
    handle = beta.register("SELECT v FROM s")
    beta.federation.step()
    with alpha.engine.catalog.write() as tx:
        unshare_stream(tx, "beta", find_stream(tx, "s"))
    alpha.push("s", [row(0)])
    beta.federation.step()
    assert "refused" in str(beta.invoke(handle).note)
    assert len(beta.invoke(handle)) == 0
    alpha.share(beta, "s")
    beta.federation.step()
    assert beta.invoke(handle).complete
    with beta.engine.catalog.write() as tx:
        remove_peer(tx, "alpha")
    beta.federation.step()
    assert "no peer named 'alpha' any more" in str(beta.invoke(handle).note)


def test_names_are_found_at_one_peer_only(sites: dict[str, Site]) -> None:
    alpha, beta, gamma = sites["alpha"], sites["beta"], sites["gamma"]
    with pytest.raises(UnknownStream, match="there is no stream or table named 'nothing'"):
        beta.register("SELECT a FROM nothing")
    gamma.engine.create_stream("s", "a INT")
    beta.receive_from(gamma, "s")
    with pytest.raises(DuplicateName, match="different streams named 's' at 'alpha' and 'gamma'"):
        beta.register("SELECT v FROM s")
    with gamma.engine.catalog.write() as tx:
        unshare_stream(tx, "beta", find_stream(tx, "s"))
    beta.register("SELECT v FROM s")
    # Streams of this server come first.
    assert gamma.register("SELECT a FROM s")
    with beta.engine.catalog.read() as tx:
        (stream,) = visible_streams(tx)
    assert (stream.home, stream.schema, stream.clock) == ("alpha", stream.visible, "stream")
    assert alpha.federation.find_remote("s") is None


def test_a_stream_that_was_recreated_is_another_one(alpha: Site, beta: Site) -> None:
    alpha.push("s", [row(0)])
    handle = beta.register("SELECT v FROM s")
    beta.federation.step()
    with alpha.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    alpha.engine.create_stream("s", SCHEMA, time="ts")
    alpha.share(beta, "s")
    alpha.push("s", [row(1)])
    beta.federation.step()
    answer = beta.invoke(handle)
    assert answer.table.to_pylist() == [{"v": 0.0}]
    assert "stream 's' is not the one that was received before: it was created again" in str(answer.note)


def test_a_relay_sends_what_it_receives(sites: dict[str, Site]) -> None:
    alpha, beta, gamma = sites["alpha"], sites["beta"], sites["gamma"]
    alpha.push("s", [row(number) for number in range(8)])
    beta.register("SELECT k, v FROM s WHERE v > 1")
    gamma.receive_from(beta, "s")
    sql = "SELECT v FROM s WHERE v > 2 BEGIN NOW - 6 SECONDS END NOW"
    expected, received = alpha.register(sql), gamma.register(sql)
    (link,) = gamma.federation.links()
    assert (link.peer, link.stream.home) == ("beta", "alpha")
    for first in (8, 12, 16):
        beta.federation.step()
        gamma.federation.step()
        assert_same(alpha.invoke(expected), gamma.invoke(received))
        beta.engine.take_everything()
        if first == 12:
            gamma.restart()
        alpha.push("s", [row(number) for number in range(first, first + 4)])
    alpha.is_away = True
    beta.federation.step()
    gamma.federation.step()
    assert "'alpha' has been away" in str(gamma.invoke(received).note)


def test_a_relay_does_not_send_what_it_lacks(sites: dict[str, Site]) -> None:
    beta, gamma = sites["beta"], sites["gamma"]
    beta.register("SELECT k, v FROM s WHERE v > 1")
    gamma.receive_from(beta, "s")
    handle = gamma.register("SELECT v FROM s")
    gamma.federation.step()
    assert "this part of stream 's' is not received here" in str(gamma.invoke(handle).note)


def test_a_replica_continues_from_another_source(sites: dict[str, Site]) -> None:
    alpha, beta = sites["alpha"], sites["beta"]
    alpha.push("s", [row(number) for number in range(8)])
    expected, narrow = (site.register("SELECT v FROM s WHERE v > 1 AND k = 1") for site in (alpha, beta))
    beta.federation.step()
    (link,) = beta.federation.links()
    beta.register("SELECT v, k FROM s WHERE v > 0")
    alpha.push("s", [row(number) for number in range(8, 14)])
    beta.federation.step()
    # The wide replica now feeds the narrow one: nothing is received twice, nothing is missing.
    beta.federation.change_source(link, "beta")
    alpha.push("s", [row(number) for number in range(14, 20)])
    for _ in range(2):
        beta.federation.step()
    assert_same(alpha.invoke(expected), beta.invoke(narrow))
    states = {state.link.id: state for state in beta.federation.link_states()}
    assert states[link.id].rows < 6
    beta.restart()
    alpha.push("s", [row(number) for number in range(20, 30)])
    for _ in range(2):
        beta.federation.step()
    assert_same(alpha.invoke(expected), beta.invoke(narrow))


def test_unregistered_queries_borrow_a_replica(alpha: Site, beta: Site) -> None:
    alpha.push("s", [row(number) for number in range(8)])
    with pytest.raises(UnknownStream, match="there is no stream or table named 'nothing'"):
        beta.answer("SELECT a FROM nothing")
    sql = "SELECT count(*) AS n FROM s WHERE v >= 1"
    assert not beta.answer(sql).complete
    beta.federation.step()
    assert_same(alpha.answer(sql), beta.answer(sql))
    assert len(beta.federation.links()) == 1


def test_streams_without_a_declared_time_have_that_of_the_home(alpha: Site, beta: Site, clock: ManualClock) -> None:
    alpha.engine.create_stream("plain", "a INT")
    alpha.share(beta, "plain")
    expected, received = (
        site.register("SELECT a FROM plain WHERE a > 0 BEGIN NOW - 90 SECONDS END NOW") for site in (alpha, beta)
    )
    for number in range(5):
        alpha.push("plain", [{"a": number}, {"a": number + 10}])
        clock.moment += timedelta(seconds=30)
    beta.federation.step()
    assert 0 < len(alpha.invoke(expected)) < 9
    assert_same(alpha.invoke(expected), beta.invoke(received))
    beta.engine.take_everything()
    assert_same(alpha.invoke(expected), beta.invoke(received))


def test_what_a_replica_cannot_answer_is_refused(alpha: Site, beta: Site) -> None:
    alpha.engine.create_stream("t", SCHEMA, time="ts", clock="stream", retain="5 seconds")
    alpha.share(beta, "t")
    with pytest.raises(Unsupported, match="steps that count rows are not supported"):
        beta.register("SELECT count(*) AS n FROM t [ROWS 3 SLIDE 3]")
    assert beta.federation.links() == []


def test_nobody_pushes_to_a_remote_stream(beta: Site) -> None:
    beta.federation.find_remote("s")
    with pytest.raises(TureenError, match="stream 's' lives at server 'alpha'"):
        beta.push("s", [row(0)])


def test_dropping_a_remote_stream_drops_its_replicas(beta: Site) -> None:
    beta.register("SELECT v FROM s")
    beta.register("SELECT v FROM s WHERE k = 1")
    with beta.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    with beta.engine.catalog.read() as tx:
        assert list_links(tx) == []
    beta.federation.step()
    assert beta.federation.link_states() == []
