"""Plans of followed joins: what explain says, and how a plan is chosen, replaced and refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tureen.joining import join_forest
from tureen.joining.plans import plan_choice
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.position import Position
from tureen.punctuation import Punctuation
from tureen.results.invoke import Invoker
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
STREAMS = ("a", "b", "c")
BLACKLISTS = {"a": 2, "b": 2, "c": 0}
JOIN = (
    "SELECT a.x AS xa, b.x AS xb, c.x AS xc FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR], c [RANGE 1 HOUR] "
    "WHERE a.k = b.k AND b.x = c.x"
)


@pytest.fixture
def streams(engine: ManualEngine) -> ManualEngine:
    for name in STREAMS:
        engine.create_stream(name, "k INT, x INT, ts TIMESTAMP", time="ts", clock="stream")
    return engine


class _Reader:
    """Follows a join, and compares its rows with those that it computes alone."""

    def __init__(self, engine: ManualEngine, hint: PlanHint) -> None:
        self.engine, self.handle = engine, engine.register(JOIN, materialize=False, hint=hint)
        self.followed = engine.invoker.follow(self.handle)
        self.position = Position.parse(engine.invoker.new_rows(self.handle, None).position())

    def read(self) -> int:
        new = self.engine.invoker.new_rows(self.handle, self.position, self.followed)
        alone = self.engine.invoker.new_rows(self.handle, self.position)
        assert new.rows.to_pylist() == alone.rows.to_pylist()
        assert new.position() == alone.position()
        self.position = Position.parse(new.position())
        return len(new)

    @property
    def operator(self) -> dict[str, Any]:
        operator: dict[str, Any] = self.engine.invoker.explain(self.handle)["operator"]
        return operator


def _push(engine: ManualEngine, stream: str, *rows: tuple[int, int], at: int = 0) -> None:
    engine.append(stream, [{"k": k, "x": x, "ts": BASE + timedelta(seconds=at)} for k, x in rows])


def test_explain_shows_the_tree_and_its_blacklists(streams: ManualEngine) -> None:
    reader = _Reader(streams, PlanHint("left-deep", True))
    assert reader.operator["plan"] == "left-deep"
    _push(streams, "a", (1, 1), (2, 2))
    _push(streams, "b", (1, 7), (1, 8))
    assert reader.read() == 0
    operator = reader.operator
    assert operator["shape"] == "((a ⋈ b) ⋈ c)"
    assert operator["intermediate_results"] == 0
    assert operator["jit"] == {
        "on": True,
        "suspended": 4,
        "resumed": 0,
        "purged": 0,
        "blacklists": BLACKLISTS,
        "turns": 0,
    }
    assert [node["avoided"] for node in operator["nodes"] if node["node"] == "(a ⋈ b)"] == [2]
    _push(streams, "c", (0, 8))
    assert reader.read() == 1
    assert reader.operator["jit"]["resumed"] == 2
    counts = streams.invoker.followers.joins.counts()
    assert (counts["trees"], counts["intermediate_results"], counts["blacklisted"]) == (1, 1, 2)


def test_closed_keys_purge_what_waits_for_them(streams: ManualEngine) -> None:
    reader = _Reader(streams, PlanHint("left-deep", True))
    _push(streams, "a", (1, 1), (2, 2))
    _push(streams, "b", (1, 7), (1, 8))
    streams.append("c", [Punctuation.of({"x": 7})])
    assert reader.read() == 0
    assert reader.operator["jit"]["purged"] == 1
    assert reader.operator["jit"]["blacklists"] == {"a": 2, "b": 1, "c": 0}
    # No later tuple of b can join the tuple of a, and none of a that of b.
    streams.append("b", [Punctuation.of({"k": 2})])
    streams.append("c", [Punctuation.of({"x": 8})])
    assert reader.read() == 0
    assert reader.operator["jit"]["blacklists"] == {"a": 1, "b": 0, "c": 0}
    counts = streams.invoker.followers.joins.counts()
    assert (counts["plan_purged"], counts["blacklist_purged"]) == (3, 3)
    # The tree of an operator that restarts is without them.
    streams.invoker.followers.joins.operators()[0].restart()
    _push(streams, "b", (1, 9))
    _push(streams, "c", (1, 9))
    assert reader.read() == 1
    assert reader.operator["jit"]["blacklists"] == {"a": 0, "b": 0, "c": 0}


def test_tuples_from_before_are_joined(streams: ManualEngine) -> None:
    _push(streams, "a", (1, 1))
    _push(streams, "b", (1, 7))
    reader = _Reader(streams, PlanHint("bushy", False))
    _push(streams, "c", (0, 7))
    assert reader.read() == 1


def test_late_tuples_are_joined_with_what_the_tree_has_forgotten(streams: ManualEngine) -> None:
    reader = _Reader(streams, PlanHint("left-deep", True))
    for hour in range(4):
        _push(streams, "a", (hour, hour), at=3600 * hour)
        _push(streams, "b", (hour, hour), at=3600 * hour)
        reader.read()
    _push(streams, "c", (0, 0), (0, 3), at=5)
    assert reader.read() == 1


def test_hint_survives_a_restart(streams: ManualEngine) -> None:
    handle = streams.register(JOIN, hint=PlanHint("bushy", False))
    about = Invoker(streams.catalog).explain(handle)
    assert (about["plan"], about["jit"]) == ("bushy", False)


@pytest.mark.parametrize("limit", ["STATE_TUPLES", "BLOCK_RESULTS"])
def test_tree_that_grows_too_large_is_replaced(
    streams: ManualEngine, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    reader = _Reader(streams, PlanHint("left-deep", False))
    _push(streams, "a", *[(1, 1)] * 40)
    assert reader.read() == 0
    if limit == "STATE_TUPLES":
        monkeypatch.setattr(join_forest, limit, 50)
    else:
        monkeypatch.setattr("tureen.joining.plans.tree_plan.BLOCK_RESULTS", 50)
    _push(streams, "b", *[(1, 7)] * 40)
    _push(streams, "c", (0, 7))
    assert reader.read() == 1600
    assert reader.operator["plan"] == "eddy"
    assert "1,6" in reader.operator["why"]
    _push(streams, "c", (0, 7))
    assert reader.read() == 1600


def test_plan_is_chosen_by_cost_and_changes_between_blocks(
    streams: ManualEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_choice, "OBSERVED_TUPLES", 20)
    reader = _Reader(streams, NO_HINT)
    plans = set()
    for number in range(30):
        # Many partners and no results at first, then results only.
        _push(streams, "a", *[(1, number)] * 4, at=number)
        _push(streams, "b", *[(1, 5 if number % 6 else 9)] * 4, at=number)
        _push(streams, "c", *[(1, 1 if number < 20 else 9)] * 2, at=number)
        reader.read()
        plans.add(reader.operator["plan"])
    assert plans == {"eddy", "bushy"}


def test_queries_that_come_later_get_what_the_tree_left_out(streams: ManualEngine) -> None:
    few = streams.register(f"{JOIN} AND a.x > 5", materialize=False, hint=PlanHint("bushy", True))
    follower = streams.invoker.follow(few)
    _push(streams, "a", (1, 1), (1, 9))
    _push(streams, "b", (1, 7))
    streams.invoker.new_rows(few, Position.parse(streams.invoker.new_rows(few, None).position()), follower)
    reader = _Reader(streams, PlanHint("bushy", True))
    assert reader.operator["queries"] == 2
    _push(streams, "c", (0, 7))
    assert reader.read() == 2
