"""Early propagation: the auctions of PWJoin §1.2, whose results appear when an auction ends or leaves its window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.closed.rules import NO_RULES, Rules
from tureen.position import Position
from tureen.punctuation import Punctuation, Range
from tureen.results.following.followed_joins import JoinFollower
from tureen.soup.change_batches import QueryChanges
from tureen.testing.manual_engine import ManualEngine

OPENED = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a.item, b.price FROM auctions a [RANGE 12 HOURS] JOIN bids b ON a.item = b.item"


class _Auctions:
    """The auctions 180 and 181, opened at the hours 0 and 1, and a follower of their bids."""

    def __init__(self, folder: Path, rules_of_bids: Rules, sql: str = SQL) -> None:
        self.engine = ManualEngine(folder)
        rules = Rules(("item",), 0)
        self.engine.create_stream("auctions", "item INT, opened TIMESTAMP", time="opened", clock="stream", rules=rules)
        self.engine.create_stream(
            "bids", "item INT, price INT, ts TIMESTAMP", time="ts", clock="stream", rules=rules_of_bids
        )
        self.handle = self.engine.register(sql, materialize=False)
        self.follower = self.engine.invoker.follow(self.handle)
        self.position = self.engine.invoker.new_rows(self.handle, None, punctuations=True).position()
        opened = [{"item": 180 + hour, "opened": OPENED + timedelta(hours=hour)} for hour in (0, 1)]
        self.engine.append("auctions", opened)

    def bid(self, hour: int, *items: Any) -> list[Any]:
        """Push bids for items and punctuations at an hour, and read the changes."""
        time = OPENED + timedelta(hours=hour)
        rows = [{"item": item, "price": hour, "ts": time} if isinstance(item, int) else item for item in items]
        self.engine.append("bids", rows)
        since = Position.parse(self.position)
        new = self.engine.invoker.new_rows(self.handle, since, self.follower, punctuations=True)
        self.position = new.position()
        changes = QueryChanges(self.handle, new)
        return [change.punctuation or (change.row["item"], change.row["price"]) for change in changes]

    def counts(self, number: int, *names: str) -> tuple[int, ...]:
        """Numbers of the state of an input."""
        assert isinstance(self.follower, JoinFollower)
        state = list(self.follower.clause.operator.state().values())[number]
        return tuple(state[name] for name in names)


IN_ORDER = Rules((), 0)


def test_results_appear_when_an_auction_ends(tmp_path: Path) -> None:
    auctions = _Auctions(tmp_path, IN_ORDER)
    assert auctions.bid(1, 180) == [(180, 1)]
    assert auctions.counts(1, "tuples", "discarded") == (0, 1), "the item is unique: no bid is kept"
    assert auctions.bid(3, 180, Punctuation(item=180)) == [(180, 3), Punctuation(item=180)]
    assert auctions.counts(0, "tuples", "purged", "invalidated") == (1, 1, 0)
    assert auctions.bid(13, 181) == [(181, 13)], "12 hours after it was opened, the end of the window included"
    assert auctions.bid(14, 181) == [Punctuation(item=181)]
    assert auctions.counts(0, "tuples", "purged", "invalidated") == (0, 1, 1)
    assert auctions.bid(15, 181, 181) == []
    assert auctions.counts(1, "discarded", "dropped") == (4, 2), "dropped without probing, from the second on"
    assert auctions.bid(16, Punctuation(item=181)) == [], "it was propagated before"


def test_only_exhausted_values_are_dropped(tmp_path: Path) -> None:
    auctions = _Auctions(tmp_path, IN_ORDER)
    assert auctions.bid(13, 180) == [Punctuation(item=180)]
    assert auctions.bid(13, 180, 181, 180) == [(181, 13)], "180 is exhausted, 181 is not"
    assert auctions.counts(1, "dropped") == (2,)


def _followed(engine: ManualEngine, handle: str, pushes: list[tuple[str, int, int]]) -> list[Any]:
    """The rows and punctuations that a follower reads after each push: of a stream, a key and an hour."""
    follower = engine.invoker.follow(handle)
    position = engine.invoker.new_rows(handle, None, punctuations=True).position()
    items: list[Any] = []
    for name, k, hour in pushes:
        engine.append(name, [{"k": k, "ts": OPENED + timedelta(hours=hour)}])
        new = engine.invoker.new_rows(handle, Position.parse(position), follower, punctuations=True)
        position = new.position()
        items += [change.punctuation or change.row["k"] for change in QueryChanges(handle, new)]
    return items


def test_nothing_is_early_before_the_slowest_stream(tmp_path: Path) -> None:
    """Of three streams, one is far ahead: the other can still have tuples that are joined with the first."""
    engine = ManualEngine(tmp_path)
    for name, unique in (("a", ("k",)), ("b", ()), ("c", ())):
        engine.create_stream(name, "k INT, ts TIMESTAMP", time="ts", clock="stream", rules=Rules(unique, 0))
    handle = engine.register(
        "SELECT a.k FROM a [RANGE 12 HOURS], b, c WHERE a.k = b.k AND b.k = c.k", materialize=False
    )
    pushes = [("a", 1, 0), ("b", 1, 2), ("c", 9, 1), ("b", 9, 20), ("c", 1, 3), ("c", 9, 21)]
    assert _followed(engine, handle, pushes) == [1, Punctuation(k=1)]
    engine.close()


def test_values_that_are_not_closed_are_not_exhausted(tmp_path: Path) -> None:
    """The tuples of a value have left their window, but another one may come."""
    engine = ManualEngine(tmp_path)
    for name in ("a", "b"):
        engine.create_stream(name, "k INT, ts TIMESTAMP", time="ts", clock="stream", rules=IN_ORDER)
    handle = engine.register("SELECT a.k FROM a [RANGE 12 HOURS] JOIN b ON a.k = b.k", materialize=False)
    pushes = [("a", 1, 0), ("b", 9, 20), ("b", 1, 20), ("a", 1, 21), ("b", 1, 21)]
    assert _followed(engine, handle, pushes) == [1, 1]
    engine.close()


def test_late_bids_are_possible_without_a_lateness(tmp_path: Path) -> None:
    auctions = _Auctions(tmp_path, NO_RULES)
    assert auctions.bid(20, 181) == []
    assert auctions.bid(2, 181) == [(181, 2)]
    early = Punctuation(ts=Range(high=OPENED + timedelta(hours=13)))
    assert auctions.bid(21, early) == [Punctuation(item=[180, 181])], "no later bid is within 12 hours"


def test_lateness_delays_early_propagation(tmp_path: Path) -> None:
    auctions = _Auctions(tmp_path, Rules((), 2 * 3600 * 1_000_000))
    assert auctions.bid(14, 999) == [], "a bid of hour 12 may follow"
    assert auctions.bid(12, 180) == [(180, 12)]
    assert auctions.bid(15, 999) == [Punctuation(item=180)]


def test_without_a_window_nothing_is_early(tmp_path: Path) -> None:
    auctions = _Auctions(tmp_path, IN_ORDER, SQL.replace(" [RANGE 12 HOURS]", ""))
    assert auctions.bid(20, 181) == [(181, 20)]
    assert auctions.bid(100, 999) == []


@pytest.mark.parametrize("hours", [6, 24])
def test_a_query_with_another_window_changes_no_punctuation(tmp_path: Path, hours: int) -> None:
    auctions = _Auctions(tmp_path, IN_ORDER)
    other = auctions.engine.register(SQL.replace("12", str(hours)), materialize=False)
    auctions.engine.invoker.follow(other)
    assert auctions.bid(13, 181) == [(181, 13), Punctuation(item=180)]
    assert auctions.bid(14, 181) == [Punctuation(item=181)]
    assert auctions.bid(16, 181) == []
    assert auctions.counts(1, "dropped") == ((1,) if hours == 6 else (0,)), "by the widest window"
