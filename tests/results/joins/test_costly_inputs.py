"""Factors with user functions in joins: before a join that multiplies, after one that filters; the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tureen.errors import QueryFailed
from tureen.results.joins import costly_inputs
from tureen.testing import Oracle
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 400


def is_even(number: int) -> bool:
    return number % 2 == 0


def raises_on_seven(number: int) -> bool:
    if number == 7:
        raise ValueError("seven")
    return True


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualEngine]:
    """A stream of numbers, one with few of their keys, each twice, and one with each key three times."""
    monkeypatch.setattr(costly_inputs, "fan_outs", costly_inputs.FanOuts())
    opened = ManualEngine(tmp_path)
    fill(opened)
    yield opened
    opened.close()


def fill(pot: ManualEngine | Oracle) -> None:
    """Create streams and functions, and push rows."""
    pot.create_stream("a", "n INT, k INT, ts TIMESTAMP", time="ts", clock="stream")
    for name in ("few", "many"):
        pot.create_stream(name, "k INT, ts TIMESTAMP", time="ts", clock="stream")
    pot.create_function("is_even", is_even, "BOOLEAN", arguments="INT")
    pot.create_function("raises_on_seven", raises_on_seven, "BOOLEAN", arguments="INT")
    times = [START + timedelta(seconds=number) for number in range(3 * ROWS)]
    pot.push("a", [{"n": number, "k": number, "ts": times[number]} for number in range(ROWS)])
    pot.push("few", [{"k": number // 2, "ts": times[number]} for number in range(40, 60)])
    pot.push("many", [{"k": number // 3, "ts": times[number]} for number in range(3 * ROWS)])


def calls(engine: ManualEngine, handle: str) -> int:
    """The calls that an invocation makes."""
    (function,) = engine.invoker.explain(handle)["functions"]
    before = function["calls"]
    engine.invoke(handle)
    (function,) = engine.invoker.explain(handle)["functions"]
    # Explaining evaluates the join, too.
    return int(function["calls"] - before) // 2


def test_calls_move_after_a_join_that_filters(engine: ManualEngine) -> None:
    sql = "SELECT a.n, few.k FROM a JOIN few ON a.k = few.k WHERE is_even(a.n)"
    oracle = Oracle()
    fill(oracle)
    expected = oracle.register(sql).invoke()
    handle = engine.register(sql, materialize=False)
    assert list(engine.invoke(handle)) == expected, "the fan-out is not known yet"
    assert calls(engine, handle) == 10, "once for each tuple with a partner"
    assert list(engine.invoke(handle)) == expected
    (function,) = engine.invoker.explain(handle)["functions"]
    (place,) = function["called_in"]
    assert place.startswith("factor 1 is_even(n), when asked for, after the join, which filters: 0.0")
    assert function["nanoseconds_per_call"] > 0


def test_calls_stay_before_a_join_that_multiplies(engine: ManualEngine) -> None:
    handle = engine.register("SELECT a.n FROM a JOIN many ON a.k = many.k WHERE is_even(a.n)", materialize=False)
    assert len(engine.invoke(handle)) == 3 * ROWS // 2
    assert calls(engine, handle) == ROWS
    (place,) = engine.invoker.explain(handle)["functions"][0]["called_in"]
    assert "before the join, which multiplies: 3 joined rows per tuple" in place


def test_cheap_factors_come_first(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM a WHERE is_even(n) AND k < 50 AND n > 9", materialize=False)
    assert [row["n"] for row in engine.invoke(handle)] == list(range(10, 50, 2))
    (function,) = engine.invoker.explain(handle)["functions"]
    before = function["calls"]
    engine.invoke(handle)
    assert engine.invoker.explain(handle)["functions"][0]["calls"] - before == 40
    assert "after 2 other factors, when asked for" in function["called_in"][0]


def test_a_call_that_raises_counts_only_with_a_partner(engine: ManualEngine) -> None:
    for _ in range(3):
        few = engine.register("SELECT a.n FROM a JOIN few ON a.k = few.k WHERE raises_on_seven(a.n)", materialize=False)
        assert len(engine.invoke(few)) == 20
        many = engine.register("SELECT a.n FROM a JOIN many ON a.k = many.k WHERE raises_on_seven(a.n)")
        with pytest.raises(QueryFailed, match=r"raises_on_seven\(7\) raised ValueError: seven"):
            engine.invoke(many)
