"""Rows that are remembered for joins, against those that are selected again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tureen.pipeline import arrival
from tureen.pot.registered import Registered
from tureen.results.joins.join_ready import ReadyJoin
from tureen.results.rows.ready import Ready
from tureen.results.rows.remembered_rows import REMEMBERED_COLUMNS, RememberedRows
from tureen.results.snapshot.segment import Hits, Segment
from tureen.results.snapshot.stream_state import Snapshot
from tureen.testing.manual_engine import ManualEngine

COLUMNS = "n INT, k INT, s STRING, w BIGINT, v BIGINT, ts TIMESTAMP"
START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.k WHERE a.n >= {} AND b.n >= {}"


@pytest.fixture
def engine(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> ManualEngine:
    """Two streams whose runs of more than ten rows are indexed."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    for name in "ab":
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    return engine


def row(number: int) -> dict[str, Any]:
    ts = START + timedelta(seconds=number)
    return {"n": number, "k": number % 7, "s": str(number), "w": number, "v": number, "ts": ts}


def push(engine: ManualEngine, name: str, first: int, count: int = 20) -> None:
    engine.push(name, [row(number) for number in range(first, first + count)])


def answer(engine: ManualEngine, handle: str) -> list[tuple[int, int]]:
    return sorted((row["x"], row["y"]) for row in engine.invoke(handle))


def expected(a: range, b: range, least: tuple[int, int]) -> list[tuple[int, int]]:
    return sorted((x, y) for x in a for y in b if x % 7 == y % 7 and x >= least[0] and y >= least[1])


def remembered(engine: ManualEngine) -> RememberedRows:
    return engine.invoker.answers.remembered


def test_answers_are_the_same_after_pushes_and_merges(engine: ManualEngine) -> None:
    limits = [(0, 5), (5, 0), (12, 12)]
    handles = [engine.register(SQL.format(*least), materialize=False) for least in limits]
    a = b = 0
    for step in range(6):
        if step % 2:
            push(engine, "b", b)
            b += 20
        else:
            push(engine, "a", a)
            engine.append("a", [row(a + 20)])
            a += 21
        for _ in range(2):
            for handle, least in zip(handles, limits, strict=True):
                assert answer(engine, handle) == expected(range(a), range(b), least)
        if step == 3:
            engine.take_everything()
            engine.seal(everything=True)
    assert remembered(engine).bytes > 0


def hits_of(engine: ManualEngine, handle: str, rows: RememberedRows, part: slice = slice(0, 20)) -> Hits:
    """The rows of the first input in the first run of `a`."""

    def select(registered: Registered, snapshot: Snapshot, ready: Ready | ReadyJoin) -> Hits:
        assert isinstance(ready, ReadyJoin)
        selector = ready.inputs[0].selector
        assert selector is not None
        segment = snapshot.streams[registered.stream_ids[0]].segments[0]
        return rows.hits(segment, registered.inputs[0], selector, part.start, part.stop)

    return engine.invoker.with_prepared(handle, select)


def test_rows_are_selected_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    push(engine, "a", 0)
    handle = engine.register(SQL.format(3, 0), materialize=False)
    rows = RememberedRows()
    first = hits_of(engine, handle, rows)
    assert first.positions().tolist() == list(range(3, 20))
    monkeypatch.setattr(Segment, "hits", None)
    assert hits_of(engine, handle, rows).positions().tolist() == list(range(3, 20))


def test_parts_of_runs_and_other_clauses_are_selected_anew(engine: ManualEngine) -> None:
    push(engine, "a", 0)
    rows = RememberedRows()
    handles = [engine.register(SQL.format(least, 0), materialize=False) for least in (3, 7)]
    assert [len(hits_of(engine, handle, rows).rows) for handle in handles] == [17, 13]
    assert hits_of(engine, handles[0], rows, slice(0, 5)).positions().tolist() == [3, 4]
    assert [len(hits_of(engine, handle, rows).rows) for handle in handles] == [17, 13]


def test_memory_is_bounded(engine: ManualEngine) -> None:
    push(engine, "a", 0)
    rows = RememberedRows(1000)
    for least in range(10):
        hits_of(engine, engine.register(SQL.format(least, 0), materialize=False), rows)
        assert 0 < rows.bytes <= 1000
    none = RememberedRows(10)
    assert len(hits_of(engine, engine.register(SQL.format(0, 0), materialize=False), none).rows) == 20
    assert none.bytes == 0


@pytest.mark.parametrize(
    ("condition", "name", "is_remembered"),
    [
        ("a.k = b.k", "k", True),
        ("a.s = b.s", "s", False),
        ("a.n = b.n AND a.k = b.k AND a.w = b.w AND a.v = b.v", "w", False),
    ],
)
def test_few_columns_of_plain_numbers_are_remembered(
    engine: ManualEngine, condition: str, name: str, is_remembered: bool
) -> None:
    push(engine, "a", 0)
    push(engine, "b", 0)
    handle = engine.register(f"SELECT a.n FROM a JOIN b ON {condition} WHERE a.n > 0", materialize=False)
    rows = [sorted(engine.invoke(handle).table.column("n").to_pylist()) for _ in range(2)]
    assert rows[0] == rows[1] != []
    columns = hits_of(engine, handle, remembered(engine)).columns
    assert columns is not None
    assert (name in columns) == is_remembered
    assert 0 < len(columns) <= REMEMBERED_COLUMNS
    for other, column in columns.items():
        assert column.to_pylist() == [row(number)[other] for number in range(1, 20)]
