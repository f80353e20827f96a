"""The streams that need background work are found without trying each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tureen.pipeline import arrival
from tureen.pipeline.compiling import compile_queries
from tureen.pipeline.debts import pay, pay_debts
from tureen.pipeline.upkeep import expire, seal
from tureen.pot.catalog import micros_now
from tureen.pot.damage import note_damage
from tureen.pot.streams import list_streams
from tureen.pot.upkeep_needs import UpkeepNeeds, upkeep_needs
from tureen.testing.manual_engine import ManualEngine

LARGE = 1 << 40


@pytest.fixture(autouse=True)
def _small_runs_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)


@pytest.fixture
def pot(engine: ManualEngine) -> ManualEngine:
    """Three streams, one of which retains an hour."""
    for name in ("a", "b"):
        engine.create_stream(name, "x INT, ts TIMESTAMP", time="ts")
    engine.create_stream("short", "x INT, ts TIMESTAMP", time="ts", retain="1 hour")
    return engine


def rows(*values: int, hours: int = 0) -> list[dict[str, object]]:
    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return [{"x": value, "ts": time} for value in values]


def needs_of(pot: ManualEngine, *, with_clauses: bool = True) -> dict[str, UpkeepNeeds]:
    with pot.catalog.read() as tx:
        return {need.stream.name: need for need in upkeep_needs(tx, with_clauses=with_clauses)}


def run_all_steps(pot: ManualEngine) -> None:
    """Run every step for every stream: those that change something must be among the needs."""
    with pot.catalog.read() as tx:
        streams = list_streams(tx)
    needs = needs_of(pot)
    for stream in streams:
        need = needs.get(stream.name)
        assert not compile_queries(pot.catalog, stream) or (need is not None and need.compile)
        assert not expire(pot.catalog, stream, micros_now()) or need is not None
        assert not seal(pot.catalog, stream) or (need is not None and need.merge)
        paid = pay_debts(pot.catalog, stream, lambda debts: [pay(debt) for debt in debts], LARGE)
        assert not paid or (need is not None and need.pay)


def test_what_no_step_would_change_is_not_needed(pot: ManualEngine) -> None:
    assert set(needs_of(pot)) == {"short"}
    pot.register("SELECT x FROM a WHERE x > 2")
    assert needs_of(pot)["a"] == UpkeepNeeds(
        needs_of(pot)["a"].stream, repair=False, merge=False, compile=True, pay=False
    )
    assert "a" not in needs_of(pot, with_clauses=False)
    run_all_steps(pot)
    pot.push("a", rows(1, 2, 3, 4))
    pot.push("b", rows(1, 2, 3, 4))
    run_all_steps(pot)
    assert set(needs_of(pot)) == {"short"}
    pot.register("SELECT x FROM b WHERE x > 3")
    assert {(name, need.compile, need.pay) for name, need in needs_of(pot).items()} == {
        ("b", True, True),
        ("short", False, False),
    }
    run_all_steps(pot)
    assert set(needs_of(pot)) == {"short"}


def test_every_step_that_changes_something_is_needed(pot: ManualEngine) -> None:
    handles = []
    for number in range(6):
        for name in ("a", "b", "short"):
            handles.append(pot.register(f"SELECT x FROM {name} WHERE x > {number}"))
            pot.push(name, rows(*range(number, number + 5), hours=number))
            if number % 2:
                pot.push(name, rows(number, hours=number))
        if number == 4:
            for handle in handles[::2]:
                pot.unregister(handle)
        run_all_steps(pot)
    for handle in handles[1::2]:
        assert len(pot.invoke(handle)) >= 1


def test_all_streams_are_searched_for_damage(pot: ManualEngine) -> None:
    pot.push("a", rows(1, 2, 3, 4))
    with pot.catalog.read() as tx:
        path = tx.execute_text("SELECT path FROM runs").scalar_one()
    with pot.catalog.write() as tx:
        note_damage(tx, path, "a wrong checksum")
    assert {name for name, need in needs_of(pot).items() if need.repair} == {"a", "b", "short"}
