"""Joined rows that are remembered, against the same query evaluated when it is invoked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tureen.pipeline import arrival
from tureen.results.joins.few_new_tuples import FEW
from tureen.results.joins.kept_rows import KeptRows
from tureen.results.joins.remembered_joins import RememberedJoins
from tureen.results.joins.remembered_part import MOST_PARTS, RememberedPart, TimeWindow, combined
from tureen.stems.join_run import JoinedTuples
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

COLUMNS = "n INT, k INT, s STRING, ts TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a.n AS x, b.n AS y, b.s FROM a{window} JOIN b{window} ON a.k = b.k WHERE a.n >= 3 AND b.n >= 2"


class Pot:
    """Two streams, and queries of which each is kept and also evaluated."""

    def __init__(self, root: Path, retain: str | None = None) -> None:
        self.now = to_micros(START)
        self.engine = ManualEngine(root, lambda: self.now)
        self.pairs: list[tuple[str, str]] = []
        self.counts = {"a": 0, "b": 0}
        for name in self.counts:
            self.engine.create_stream(name, COLUMNS, time="ts", clock="stream", retain=retain)

    def register(self, sql: str) -> str:
        """Register a query twice; return the handle of the one that is kept."""
        kept = self.engine.register(sql)
        self.pairs.append((kept, self.engine.register(sql, materialize=False)))
        return kept

    def push(self, name: str, count: int, *, pending: bool = False, late: int = 0) -> None:
        """Push rows, which stay in the inbox if they are to be pending."""
        first = self.counts[name]
        self.counts[name] += count
        rows = [row(number, late) for number in range(first, first + count)]
        (self.engine.append if pending else self.engine.push)(name, rows)
        self.now = to_micros(rows[-1]["ts"])

    def check(self, now: int | None = None) -> list[dict[str, Any]]:
        """All answers twice: what the first invocation remembers must be right."""
        answers = []
        for kept, lazy in self.pairs:
            answers = list(self.engine.invoke(lazy, now))
            for _ in range(2):
                assert list(self.engine.invoke(kept, now)) == answers
        return answers

    @property
    def remembered(self) -> RememberedJoins:
        """What the engine remembers."""
        return self.engine.invoker.answers.remembered_joins


def row(number: int, late: int = 0) -> dict[str, Any]:
    return {"n": number, "k": number % 5, "s": f"s{number}", "ts": START + timedelta(seconds=number - late)}


@pytest.fixture
def pot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pot]:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    pot = Pot(tmp_path / "pot")
    yield pot
    pot.engine.close()


def fill(pot: Pot) -> None:
    pot.push("a", 20)
    pot.push("b", 20)
    pot.engine.keep_joins()


def at(second: float) -> int:
    return to_micros(START + timedelta(seconds=second))


def test_pushes_are_joined_once(pot: Pot, monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[tuple[int, ...]] = []
    original = KeptRows.joined_since

    def joined_since(rows: KeptRows, ids: tuple[int, ...]) -> list[JoinedTuples]:
        joined.append(ids)
        return original(rows, ids)

    monkeypatch.setattr(KeptRows, "joined_since", joined_since)
    kept = pot.register(SQL.format(window=""))
    fill(pot)
    assert pot.check()
    for name in "abab" * 3 * MOST_PARTS:
        pot.push(name, 1, pending=True)
        pot.check()
    assert len(joined) == 1
    known = pot.remembered.find(kept)
    assert known is not None
    assert known.rows == len(pot.check())
    assert len(known.parts) <= 2 * MOST_PARTS
    pot.push("a", 1, pending=True)
    pot.push("b", 1, pending=True)
    pot.check()
    assert len(joined) == 1
    before = pot.remembered.find(kept)
    assert before is not None
    pot.push("a", FEW + 1, pending=True)
    pot.push("b", 1, pending=True)
    pot.check()
    assert joined[1:] == [before.ends]


def test_commits_merges_and_join_runs_leave_what_is_remembered(pot: Pot) -> None:
    kept = pot.register(SQL.format(window=""))
    fill(pot)
    first = None
    for _ in range(4):
        pot.push("a", 3, pending=True, late=2)
        pot.push("b", 3, pending=True)
        pot.check()
        known = pot.remembered.find(kept)
        assert known is not None
        first = first or known.parts[0]
        for step in (pot.engine.take_everything, pot.engine.keep_joins, lambda: pot.engine.seal(everything=True)):
            step()
            pot.check()
            after = pot.remembered.find(kept)
            assert after is not None
            assert after.ends == known.ends
            assert after.parts[0] is known.parts[0]


def test_rows_of_late_tuples_are_in_order(pot: Pot) -> None:
    pot.register(SQL.format(window=""))
    pot.register("SELECT b.n AS y, a.n AS x FROM b JOIN a ON a.k = b.k")
    fill(pot)
    pot.check()
    for late in (0, 9, 30, 4):
        pot.push("b", 2, pending=True, late=late)
        pot.push("a", 1, pending=True, late=late)
        pot.check()


@pytest.mark.parametrize("window", [" [RANGE 8 SECONDS]", " [ROWS 6]", ""])
def test_windows_are_evaluated_at_each_now(pot: Pot, window: str) -> None:
    pot.register(SQL.format(window=window))
    fill(pot)
    sizes = {len(pot.check(at(second))) for second in (-1, 3, 10, 18.5, 19, 19.5, 30, 19)}
    assert window == "" or len(sizes) > 2
    pot.check()
    for number in range(12):
        pot.push("ab"[number % 2], 1, pending=True)
        pot.check(at(15))
        pot.check()
        pot.check(at(40))
    pot.check(at(12))


@pytest.mark.parametrize("edge", range(9, 14))
def test_edges_of_windows_are_inside(pot: Pot, edge: int) -> None:
    begin, end = (START + timedelta(seconds=second) for second in (edge - 5, edge))
    pot.register(f"SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.k BEGIN '{begin:%F %T}' END '{end:%F %T}'")
    fill(pot)
    assert {each["x"] for each in pot.check()} == set(range(edge - 5, edge + 1))
    pot.push("a", 1, pending=True, late=20 - edge)
    assert 20 in {each["x"] for each in pot.check()}


def test_future_and_past_nows_remember_nothing(pot: Pot) -> None:
    kept = pot.register(SQL.format(window=" [RANGE 8 SECONDS]"))
    fill(pot)
    pot.check(at(1000))
    assert pot.remembered.find(kept) is None
    pot.check()
    known = pot.remembered.find(kept)
    assert known is not None
    pot.push("a", 1, pending=True)
    pot.check(at(15))
    assert pot.remembered.find(kept) is known
    pot.check()


def test_dropped_tuples_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    pot = Pot(tmp_path / "pot", retain="25 seconds")
    kept = pot.register(SQL.format(window=""))
    fill(pot)
    pot.check()
    known = pot.remembered.find(kept)
    assert known is not None
    for _ in range(3):
        pot.push("a", 15)
        pot.push("b", 15)
        pot.check()
        pot.engine.expire()
        pot.check()
    after = pot.remembered.find(kept)
    assert after is not None
    assert min(part.least_ids[0] for part in after.parts) > min(part.least_ids[0] for part in known.parts)
    pot.engine.close()


def test_unregistered_query_is_not_answered_and_another_is(pot: Pot) -> None:
    kept = pot.register(SQL.format(window=""))
    fill(pot)
    pot.check()
    for handle in pot.pairs.pop():
        pot.engine.unregister(handle)
    again = pot.register(SQL.format(window="").replace("a.n >= 3", "a.n >= 9"))
    pot.engine.keep_joins()
    assert min(each["x"] for each in pot.check()) == 9
    assert pot.remembered.find(again) is not None
    assert kept != again


@pytest.mark.parametrize("remembered", [RememberedJoins(most_rows=40), RememberedJoins(max_bytes=6_000)])
def test_large_joins_are_not_remembered(pot: Pot, remembered: RememberedJoins) -> None:
    pot.engine.invoker.answers.remembered_joins = remembered
    kept = pot.register(SQL.format(window=""))
    fill(pot)
    pot.check()
    known = pot.remembered.find(kept)
    assert known is not None
    assert not known.parts
    assert known.refused is not None
    pot.push("a", 5)
    pot.engine.keep_joins()
    pot.check()
    assert pot.remembered.bytes <= 6_000


def test_rows_of_least_recent_queries_are_dropped(pot: Pot) -> None:
    pot.engine.invoker.answers.remembered_joins = RememberedJoins(max_bytes=40_000)
    for least in range(12):
        pot.register(SQL.format(window="").replace("a.n >= 3", f"a.n >= {least}"))
    fill(pot)
    pot.check()
    assert 0 < pot.remembered.bytes <= 40_000
    assert pot.remembered.find(pot.pairs[0][0]) is None
    assert pot.remembered.find(pot.pairs[-1][0]) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.n + b.n AS z FROM a JOIN b ON a.k = b.k ORDER BY z DESC LIMIT 7",
        "SELECT DISTINCT b.s FROM a JOIN b ON a.k = b.k AND a.n < b.n",
        "SELECT a.n, b.n AS y FROM a JOIN b ON a.k = b.k LIMIT 3 OFFSET 2",
        "SELECT a.n, b.n AS y FROM a JOIN b ON a.s = b.s",
        "SELECT x.n, y.n AS m FROM a x JOIN a y ON x.k = y.k",
        "SELECT a.n, b.n AS y FROM a LEFT JOIN b ON a.k = b.k AND a.n + 3 < b.n",
        "SELECT count(*) AS c FROM a JOIN b ON a.k = b.k",
        "SELECT 1 AS one FROM a JOIN b ON a.k = b.k",
    ],
)
def test_joins_of_every_kind(pot: Pot, sql: str) -> None:
    pot.register(sql)
    fill(pot)
    for name in "abba":
        pot.check()
        pot.push(name, 2, pending=True)
    pot.check()


def part(*rows: tuple[int, int, int]) -> RememberedPart:
    """A part whose rows have a time, and an id of each of two streams."""
    times, first, second = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    columns = pa.RecordBatch.from_arrays([pa.array(times), pa.array(first)], ["t", "i"])
    return RememberedPart(JoinedTuples([first, second], times), [times, times + 1], columns)


def test_parts_are_combined_in_order() -> None:
    parts: tuple[RememberedPart, ...] = ()
    for number in range(100):
        parts = combined([*parts, part((5, number, 9 - number % 2))], (0, 1))
        assert len(parts) <= MOST_PARTS + 8
    assert [row for part in parts for row in part.columns.column("i").to_pylist()] == list(range(100))
    (last,) = combined([*parts, part((5, 99, 7))], (1, 0))[-1:]
    assert last.tuples.ids[1].tolist()[:2] == [7, 8]
    assert len(combined([*parts, part((4, 0, 0))], (0, 1))) == 1


def test_part_is_compared_with_windows() -> None:
    rows = part((1, 0, 0), (3, 1, 1), (6, 2, 2))
    whole = TimeWindow(None, None)
    assert rows.in_windows([whole, whole]) is rows.columns
    assert rows.in_windows([TimeWindow(1, 6), TimeWindow(2, 7)]) is rows.columns
    assert rows.in_windows([TimeWindow(2, 6), whole]).column("i").to_pylist() == [1, 2]
    assert rows.in_windows([whole, TimeWindow(2, 6)]).column("i").to_pylist() == [0, 1]
    assert rows.in_windows([TimeWindow(7, None), whole]).num_rows == 0
