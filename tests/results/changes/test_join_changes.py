"""Changes of joins: which have them, in which order, and when a row of EXISTS or IN appears."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tureen.errors import Unsupported
from tureen.position import Position
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    """Two streams and a table."""
    for name in ("t", "q"):
        engine.create_stream(name, "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
    Dimensions(engine.catalog).create("dim", "k INT", [{"k": 1}, {"k": 1}])
    return engine


def _push(engine: ManualEngine, name: str, k: int, v: int, second: int) -> None:
    engine.append(name, [{"k": k, "v": v, "ts": BASE + timedelta(seconds=second)}])


def _changes(engine: ManualEngine, handle: str, since: str) -> tuple[list[int], str]:
    new = engine.invoker.new_rows(handle, Position.parse(since))
    return new.rows.column(0).to_pylist(), new.position()


ORDERED = (
    "SELECT t.v AS x, q.v AS y FROM t JOIN q ON t.k = q.k",
    "SELECT t.v AS x, q.v AS y, u.v AS z FROM q, t, t u WHERE t.k = q.k AND u.k = t.k",
)


def _followed(engine: ManualEngine, sql: str, pushes: list[tuple[str, int]], reads: set[int]) -> list[tuple[int, ...]]:
    """The changes of a join whose follower reads after some of the pushes, and after the last one."""
    handle = engine.register(sql, materialize=False)
    follower = engine.invoker.follow(handle)
    position = engine.invoker.new_rows(handle, None).position()
    rows: list[tuple[int, ...]] = []
    for number, (name, k) in enumerate(pushes):
        _push(engine, name, k, number, number)
        if number in reads or number + 1 == len(pushes):
            new = engine.invoker.new_rows(handle, Position.parse(position), follower)
            position = new.position()
            rows += [tuple(row.values()) for row in new.rows.to_pylist()]
    return rows


@pytest.mark.parametrize("sql", ORDERED)
def test_order_agrees_with_the_order_of_arrival_in_each_stream(tmp_path: Path, sql: str) -> None:
    """Values are numbers in the order of arrival, so later tuples have greater ones."""
    draw = random.Random(4)
    pushes = [(draw.choice("tq"), draw.randrange(2)) for _ in range(16)]
    seen = []
    for number, reads in enumerate([set(range(16)), set[int](), {3, 4, 9}, {7, 12}]):
        engine = ManualEngine(tmp_path / str(number))
        for name in ("t", "q"):
            engine.create_stream(name, "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
        rows = _followed(engine, sql, pushes, reads)
        engine.close()
        for earlier, later in itertools.combinations(rows, 2):
            assert not all(first >= second for first, second in zip(earlier, later, strict=True)), (earlier, later)
        seen.append(rows)
    assert len(seen[0]) > 10
    assert all(Counter(rows) == Counter(seen[0]) for rows in seen)
    assert seen[0] != seen[1], "the order of other rows depends on what is read together"


@pytest.mark.parametrize("batched", [True, False])
def test_a_row_appears_with_its_first_partner(engine: ManualEngine, batched: bool) -> None:
    sql = "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM q WHERE q.k = t.k) BEGIN NOW - 10 END NOW"
    handle = engine.register(sql)
    position = engine.invoke(handle).position
    seen: list[int] = []
    for name, k, v, second in [
        ("t", 1, 0, 0),
        ("q", 1, 0, 5),  # The first tuple has a partner now.
        ("q", 1, 0, 6),  # And another one, which changes nothing.
        ("t", 1, 1, 7),  # It has partners when it arrives.
        ("t", 2, 2, 8),
        ("q", 2, 0, 30),  # The partner comes too late for the window.
    ]:
        _push(engine, name, k, v, second)
        if not batched:
            rows, position = _changes(engine, handle, position)
            seen += rows
    seen += _changes(engine, handle, position)[0]
    assert sorted(seen) == [0, 1]


def test_rows_with_several_partners_in_a_table_appear_once(engine: ManualEngine) -> None:
    handle = engine.register("SELECT v FROM t WHERE k IN (SELECT k FROM dim)")
    position = engine.invoke(handle).position
    _push(engine, "t", 1, 7, 0)
    _push(engine, "t", 2, 8, 1)
    assert _changes(engine, handle, position)[0] == [7]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT v FROM t WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.k = t.k)", "a row disappears when a partner"),
        ("SELECT v FROM t WHERE k NOT IN (SELECT k FROM q)", "a row disappears when a partner"),
        ("SELECT t.v FROM t LEFT ANTI JOIN q ON t.k = q.k JOIN dim ON dim.k = t.k", "a row disappears when a partner"),
        ("SELECT t.v FROM t LEFT JOIN q ON t.k = q.k", "outer join"),
        ("SELECT t.v FROM t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts", "ASOF JOIN"),
        ("SELECT v FROM t WHERE v > 1 OR EXISTS (SELECT 1 FROM q WHERE q.k = t.k)", "computed for each row"),
        ("SELECT v FROM t WHERE k IN (SELECT max(k) FROM q)", "query in parentheses"),
        ("SELECT k FROM dim WHERE EXISTS (SELECT 1 FROM q WHERE q.k = dim.k)", "rows of a table"),
        ("SELECT v FROM t WHERE EXISTS (SELECT 1 FROM q [ROWS 3] WHERE q.k = t.k)", "window of rows"),
        ("SELECT t.v FROM t JOIN q ON t.k = q.k END NOW - 1 SECOND", "rows appear as time passes"),
        (
            "SELECT t.v FROM t, dim WHERE t.k = dim.k BEGIN NOW - INTERVAL '3' MONTH END NOW - INTERVAL '1' MONTH",
            "ends before NOW",
        ),
    ],
)
def test_joins_without_changes_say_why(engine: ManualEngine, sql: str, reason: str) -> None:
    handle = engine.register(sql)
    with pytest.raises(Unsupported, match=reason):
        engine.invoker.new_rows(handle, None)
