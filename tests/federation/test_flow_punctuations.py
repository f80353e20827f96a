"""Punctuations over links: what is final, and what is closed, is so where a stream is received as it is at its home."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.federation.servers_in_process import Site
from tests.results.groups.test_final_following import BASE, QUERIES, RULES, SCHEMA, STEP, groups_of, row
from tureen.closed.rules import Rules
from tureen.errors import Unsupported
from tureen.federation.neighbour import PeerInfo
from tureen.position import BEGINNING, Position
from tureen.pot.streams import note_declared
from tureen.punctuation import Punctuation
from tureen.soup.change_batches import QueryChanges
from tureen.soup.stream_derivation import derive_stream
from tureen.testing.final_twin import Group
from tureen.testing.manual_engine import ManualClock
from tureen.testing.punctuations import matches

SELECTION = "SELECT k, v, ts FROM s WHERE v > 0"


class Follower:
    """A query at one server, and everything that was reported of it."""

    def __init__(self, site: Site, sql: str) -> None:
        self.site, self._handle = site, site.register(sql)
        self._position = BEGINNING
        self.groups: dict[Group, tuple[int, int]] = {}
        self.items: list[Any] = []

    def final_groups(self) -> dict[Group, tuple[int, int]]:
        """All groups that became final, each reported once, and each in the answer."""
        changes = self.site.engine.invoker.group_changes(self._handle, Position.parse(self._position))
        groups = groups_of([change.row for change in changes.changed])
        assert not groups.keys() & self.groups.keys()
        self.groups |= groups
        self._position = str(changes.position())
        return self.groups

    def answer(self) -> list[dict[str, Any]]:
        """The answer."""
        rows: list[dict[str, Any]] = self.site.invoke(self._handle).table.to_pylist()
        return rows

    def read(self) -> list[Any]:
        """All rows and punctuations so far, in order."""
        new = self.site.engine.invoker.new_rows(self._handle, Position.parse(self._position), punctuations=True)
        changes = QueryChanges(self._handle, new)
        self.items += [change.row if change.punctuation is None else change.punctuation for change in changes]
        self._position = str(new.position())
        return self.items


class Network:
    """A home, a server that receives from it, and one that receives from that one."""

    def __init__(self, root: Path, rules: tuple[Rules, Rules]) -> None:
        sites: dict[str, Site] = {}
        clock = ManualClock(BASE + timedelta(seconds=30))
        self.alpha, self.beta, self.gamma = (Site(name, root, sites, clock) for name in ("alpha", "beta", "gamma"))
        for name, each in zip("sb", rules, strict=True):
            self.alpha.engine.create_stream(name, SCHEMA, "ts", "stream", rules=each)
        self.beta.receive_from(self.alpha, "s", "b")

    def follow(self, sql: str) -> list[Follower]:
        """Register a query at all servers, from the home on."""
        followers = [Follower(site, sql) for site in (self.alpha, self.beta)]
        self.gamma.receive_from(self.beta)
        for name in ("s", "b"):
            if self.beta.has_stream(name):
                self.beta.share(self.gamma, name)
        return [*followers, Follower(self.gamma, sql)]

    def run(self, word: str, items: list[Any]) -> None:
        """Do a step."""
        match word.split():
            case ["take", name]:
                self.alpha.engine.take(name)
                self.alpha.engine.inbox.trim()
            case ["take", "at", name]:
                site = {"beta": self.beta, "gamma": self.gamma}[name]
                site.engine.take_everything()
                site.engine.inbox.trim()
            case ["seal"]:
                self.beta.upkeep()
            case ["restart"]:
                for site in (self.beta, self.alpha, self.gamma):
                    site.restart()
            case ["reconnect"]:
                # Whatever stands before the next tuple is sent again.
                self.beta.federation.step()
            case ["miss"]:
                pass
            case _:
                self.alpha.push(word, items)

    def receive(self) -> None:
        """Receive what the home has now."""
        self.beta.federation.step()
        self.gamma.federation.step()

    def close(self) -> None:
        """Close all pots."""
        for site in (self.alpha, self.beta, self.gamma):
            site.close()


LINK_STEP: st.SearchStrategy[tuple[str, list[Any]]] = STEP | st.tuples(
    st.sampled_from(["take at beta", "take at gamma", "reconnect", "miss", "restart"]), st.just([])
)


SELECTED = (
    "SELECT k, count(*) n, sum(v) t FROM s WHERE v > 0 GROUP BY k EMIT FINAL "
    "BEGIN TIMESTAMP '2026-01-01 00:00:03' END TIMESTAMP '2026-01-01 00:00:06'"
)
SQL = [*(query.sql for query in QUERIES), SELECTED]


@example(
    SQL[6],
    (Rules(("k",)), Rules((), 0)),
    [("s", [row(1, 0), row(2, 1)]), ("b", [row(1, 1), row(1, 2)]), ("b", [Punctuation(k=1), row(2, 4), row(0, 9)])],
)
# The highest time at the home is that of a tuple that is not received.
@example(SELECTED, (Rules((), 3_000_000), Rules()), [("s", [row(1, 4), row(1, 8, v=0)]), ("s", [row(1, 12, v=0)])])
@given(st.sampled_from(SQL), st.tuples(RULES, RULES), st.lists(LINK_STEP, min_size=3, max_size=7))
@example_settings(8)
def test_final_groups_are_those_of_the_home(
    sql: str, rules: tuple[Rules, Rules], steps: list[tuple[str, list[Any]]]
) -> None:
    note(f"{sql}, {rules}, {steps}")
    with TemporaryDirectory() as directory:
        network = Network(Path(directory), rules)
        network.run(*steps[0])
        home, *others = network.follow(sql)
        for word, items in [("reconnect", []), *steps[1:], ("take at beta", [])]:
            network.run(word, items)
            expected = home.final_groups()
            if word == "miss":
                continue
            network.receive()
            for follower in others:
                assert groups_of(follower.answer()) == groups_of(home.answer()), follower.site.name
                assert follower.final_groups() == expected, follower.site.name
        network.close()


CANDIDATES = [
    {"k": k, "v": v, "ts": BASE + timedelta(seconds=half / 2)}
    for k in (0, 1, 2, 9)
    for v in (1, 2, 9)
    for half in (-9, *range(26), 99)
]
"""Tuples that stand for all others: with values that no punctuation has, beside those that some have."""


def closes_nothing_new(punctuation: Punctuation, earlier: list[Any]) -> bool:
    """Whether earlier punctuations close whatever a punctuation closes."""
    known = [each for each in earlier if isinstance(each, Punctuation)]
    closed = [tuple_ for tuple_ in CANDIDATES if matches(punctuation, tuple_)]
    return all(any(matches(each, tuple_) for each in known) for tuple_ in closed)


def assert_same_items(expected: list[Any], received: list[Any]) -> None:
    """The same rows and punctuations in the same order, without those that close nothing new."""
    index = 0
    for item in expected:
        if index < len(received) and received[index] == item:
            index += 1
        else:
            assert isinstance(item, Punctuation), (item, received[index:])
            assert closes_nothing_new(item, received[:index]), (item, received)
    assert index == len(received), received[index:]


@given(st.lists(LINK_STEP, min_size=3, max_size=8))
@example_settings(8)
def test_punctuations_stand_among_the_rows_as_at_the_home(steps: list[tuple[str, list[Any]]]) -> None:
    note(str(steps))
    with TemporaryDirectory() as directory:
        network = Network(Path(directory), (Rules(), Rules()))
        network.run(*steps[0])
        home, *others = network.follow(SELECTION)
        for word, items in [("miss", []), *steps[1:], ("reconnect", [])]:
            network.run(word, items)
            network.receive()
            for follower in others:
                assert_same_items(home.read(), follower.read())
        network.close()


@pytest.fixture
def network(tmp_path: Path) -> Any:
    network = Network(tmp_path, (Rules(), Rules()))
    yield network
    network.close()


def test_punctuations_on_other_columns_are_not_sent(network: Network) -> None:
    _, follower, _ = network.follow("SELECT k FROM s WHERE k > 0")
    network.alpha.push("s", [row(1, 0), Punctuation(k=1), Punctuation(r="z"), Punctuation(k=2, v=7), row(2, 1)])
    network.receive()
    assert follower.read() == [{"k": 1}, Punctuation(k=1), {"k": 2}]


def test_a_replica_without_punctuations_gets_those_of_the_past(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that an earlier version has received, which the query now shares."""
    network.alpha.push("s", [row(1, 0), Punctuation(k=1), row(2, 1)])
    with monkeypatch.context() as patched:
        patched.setattr("tureen.federation.flow_reader.FlowPunctuations.read", lambda *_: [])
        network.beta.register("SELECT * FROM s")
        network.receive()
    final = Follower(network.beta, QUERIES[0].sql)
    assert final.answer() == []
    network.beta.restart()
    network.receive()
    assert [each["k"] for each in final.answer()] == [1]
    assert len(network.beta.federation.links()) == 1


def test_derived_streams_have_final_groups_of_remote_streams(network: Network) -> None:
    beta, alpha = network.beta, network.alpha
    sql = "SELECT k, count(*) AS n FROM s GROUP BY k EMIT FINAL"
    options: dict[str, Any] = {"time": None, "retain": None, "clock": None}
    derive_stream(beta.engine.catalog, "finished", sql, remote=beta.federation, **options)
    finished = beta.register("SELECT k, n FROM finished")
    alpha.push("s", [row(1, 0), row(2, 0), row(1, 1), Punctuation(k=1)])
    for punctuation in (Punctuation(k=[1, 5]), Punctuation(k=2)):
        network.receive()
        beta.engine.derive()
        alpha.push("s", [row(3, 2), punctuation])
        beta.restart()
    network.receive()
    beta.engine.derive()
    assert beta.invoke(finished).table.to_pylist() == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]


def test_rules_are_learned_from_the_home(network: Network) -> None:
    """Steps wait for a lateness that was not known when an earlier version met the stream."""
    alpha, beta = network.alpha, network.beta
    alpha.engine.create_stream("late", SCHEMA, "ts", "stream", rules=Rules((), 5_000_000))
    alpha.share(beta, "late")
    stream = beta.federation.find_remote("late")
    assert stream is not None
    assert stream.rules == Rules((), 5_000_000)
    with beta.engine.catalog.write() as tx:
        note_declared(tx, stream, Rules())
    beta.register("SELECT * FROM late")
    final = Follower(beta, "SELECT k, count(*) AS n, sum(v) AS t FROM late [TUMBLE 2 SECONDS] GROUP BY k EMIT FINAL")
    alpha.push("late", [row(0, 1), row(1, 5)])
    network.receive()
    assert final.final_groups() == {}
    alpha.push("late", [row(3, 7, v=0)])
    network.receive()
    assert final.final_groups() == {(0,): (1, 1)}


def test_peers_that_send_no_punctuations_are_refused(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    described = PeerInfo.as_json

    def of_an_earlier_version(info: PeerInfo) -> dict[str, Any]:
        return {name: value for name, value in described(info).items() if name != "rules"}

    info = network.alpha.federation.serving.info("beta")
    assert PeerInfo.from_json(info.as_json()) == info
    earlier = PeerInfo.from_json(of_an_earlier_version(info))
    monkeypatch.setattr(network.alpha.federation.serving, "info", lambda _: earlier)
    with pytest.raises(Unsupported, match="EMIT FINAL is not supported over stream 's'"):
        network.beta.register(QUERIES[0].sql)
    assert network.beta.federation.links() == []


def test_feeds_over_replicas_report_what_the_time_at_the_home_changes_once(network: Network) -> None:
    """The time at the home passes without tuples that are received; it is not known for an earlier position."""
    alpha, beta = network.alpha, network.beta
    sql = "SELECT k, count(*) AS n FROM s WHERE v > 0 GROUP BY k BEGIN NOW - 4 SECONDS END NOW"
    handle = beta.register(sql)
    invoker = beta.engine.invoker
    groups: dict[int, int] = {}

    def read(since: Position | None) -> Position:
        """Apply the changes of a feed since a position."""
        network.receive()
        (link,) = beta.federation.links()
        end = invoker.view.snapshot((link.id,)).feed_end(beta.engine._clock())
        for change in invoker.group_changes(handle, since, feed_end=end).changed if since is not None else ():
            if change.kind == "insert":
                assert change.row["k"] not in groups
            if change.kind == "delete":
                del groups[change.row["k"]]
            else:
                groups[change.row["k"]] = change.row["n"]
        return end

    position = read(None)
    for rows in ([row(1, 0)], [row(2, 1), row(9, 10, v=0)], [row(3, 11)], [row(9, 30, v=0)], [row(4, 31)]):
        alpha.push("s", rows)
        position = read(position)
    assert groups == {each["k"]: each["n"] for each in beta.invoke(handle)} == {4: 1}
