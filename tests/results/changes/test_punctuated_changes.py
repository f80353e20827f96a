"""Punctuations among the changes of queries, and in derived streams: in order, once, and resumed exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tureen.closed.rules import Rules
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation, Range
from tureen.results.answer import Change
from tureen.soup.change_batches import QueryChanges
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    opened = ManualEngine(tmp_path)
    opened.create_stream("a", "k INT, x STRING")
    opened.create_stream("b", "k BIGINT, y INT")
    opened.create_stream("u", "k INT, z INT", rules=Rules(("k",)))
    return opened


def changes(engine: ManualEngine, handle: str, since: str = BEGINNING) -> list[Change]:
    new = engine.invoker.new_rows(handle, Position.parse(since), punctuations=True)
    assert shown(list(QueryChanges(handle, engine.invoker.new_rows(handle, Position.parse(new.position()))))) == []
    return list(QueryChanges(handle, new))


def shown(batch: list[Change]) -> list[Any]:
    return [change.row if change.punctuation is None else change.punctuation for change in batch]


def check_resumes(engine: ManualEngine, handle: str) -> list[Any]:
    """All changes; from each position, those after it."""
    batch = changes(engine, handle)
    for index, change in enumerate(batch):
        rest = changes(engine, handle, change.position)
        assert shown(rest) == shown(batch[index + 1 :]), change.position
    return shown(batch)


ITEMS: list[Any] = [
    {"k": 1, "x": "a"},
    Punctuation(k=1),
    {"k": 7, "x": "b"},
    Punctuation(k=[2, 9]),
    Punctuation(x="x", k=Range(low=3)),
    {"k": 0, "x": "c"},
]


def test_selection_has_the_punctuations_of_its_stream(engine: ManualEngine) -> None:
    handle = engine.register("SELECT k, x AS name FROM a WHERE k < 3")
    engine.append("a", ITEMS)
    engine.append("a", [Punctuation(x="z")])
    expected = [
        {"k": 1, "name": "a"},
        Punctuation(k=1),
        Punctuation(k=[2, 9]),
        Punctuation(k=Range(low=3), name="x"),
        {"k": 0, "name": "c"},
        Punctuation(name="z"),
    ]
    assert check_resumes(engine, handle) == expected
    engine.take("a")
    assert check_resumes(engine, handle) == expected, "taken, they have the same places"


def test_projection_drops_punctuations_on_other_columns(engine: ManualEngine) -> None:
    handle = engine.register("SELECT k, upper(x) AS x FROM a")
    engine.append("a", ITEMS)
    assert [item for item in check_resumes(engine, handle) if isinstance(item, Punctuation)] == [
        Punctuation(k=1),
        Punctuation(k=[2, 9]),
    ]


def test_positions_without_numbers_are_before_the_punctuations_after_them(engine: ManualEngine) -> None:
    handle = engine.register("SELECT k FROM a")
    engine.append("a", [{"k": 1, "x": "a"}])
    answered = engine.invoke(handle).position
    engine.append("a", [Punctuation(k=1), {"k": 2, "x": "a"}])
    assert shown(changes(engine, handle, answered)) == [Punctuation(k=1), {"k": 2}]
    plain = engine.invoker.new_rows(handle, Position.parse(answered)).position()
    engine.append("a", [Punctuation(k=2)])
    assert shown(changes(engine, handle, plain)) == [Punctuation(k=2)]
    assert shown(changes(engine, handle, changes(engine, handle, plain)[-1].position)) == []


def test_without_a_position_only_later_punctuations_count(engine: ManualEngine) -> None:
    handle = engine.register("SELECT k FROM a")
    joined = engine.register("SELECT a.k FROM a JOIN b ON a.k = b.k", materialize=False)
    engine.append("a", [{"k": 1, "x": "a"}, Punctuation(k=1)])
    engine.append("b", [Punctuation(k=1)])
    starts = [engine.invoker.new_rows(each, None, punctuations=True).position() for each in (handle, joined)]
    assert [shown(changes(engine, each, start)) for each, start in zip((handle, joined), starts, strict=True)] == [
        [],
        [],
    ]
    engine.append("a", [Punctuation(k=2)])
    engine.append("b", [Punctuation(k=2)])
    for each, start in zip((handle, joined), starts, strict=True):
        assert shown(changes(engine, each, start)) == [Punctuation(k=2)]


def test_join_propagates_what_all_inputs_have_closed(engine: ManualEngine) -> None:
    handle = engine.register("SELECT a.k, b.y FROM a JOIN b ON a.k = b.k", materialize=False)
    engine.append("a", [{"k": 1, "x": "a"}, {"k": 2, "x": "a"}])
    engine.append("b", [{"k": 1, "y": 1}, Punctuation(k=1)])
    assert check_resumes(engine, handle) == [{"k": 1, "y": 1}]
    engine.append("a", [{"k": 1, "x": "again"}, Punctuation(k=[1, 5])])
    assert check_resumes(engine, handle) == [{"k": 1, "y": 1}, {"k": 1, "y": 1}, Punctuation(k=1)]
    engine.append("a", [Punctuation(k=Range(high=3)), Punctuation(k=1)])
    engine.append("b", [Punctuation(k=[3, 4]), Punctuation(k=3, y=8), Punctuation(k=Range(low=5, high=6))])
    assert sorted(map(str, check_resumes(engine, handle)[2:])) == sorted(
        map(str, [Punctuation(k=1), Punctuation(k=3), Punctuation(k=3, y=8), Punctuation(k=5)])
    )


def test_ranges_that_grow_propagate_each_value_once(engine: ManualEngine) -> None:
    handle = engine.register("SELECT a.k FROM a JOIN b ON a.k = b.k", materialize=False)
    engine.append("b", [Punctuation(k=[5, 15]), Punctuation(k=Range(low=20, high=40))])
    since, propagated = BEGINNING, []
    for high in (10, 25, 30):
        engine.append("a", [Punctuation(k=Range(high=high))])
        batch = changes(engine, handle, since)
        propagated += shown(batch)
        since = batch[-1].position
    assert propagated == [
        Punctuation(k=5),
        Punctuation(k=Range(low=20, high=25)),
        Punctuation(k=15),
        Punctuation(k=Range(low=26, high=30)),
    ]
    assert check_resumes(engine, handle) == [Punctuation(k=Range(low=20, high=30)), Punctuation(k=[5, 15])]


def test_unique_keys_close_like_punctuations(engine: ManualEngine) -> None:
    handle = engine.register("SELECT u.k AS item, b.y FROM u JOIN b ON u.k = b.k", materialize=False)
    engine.append("u", [{"k": 1, "z": 0}])
    engine.append("b", [{"k": 1, "y": 1}, Punctuation(k=1), Punctuation(k=Range(low=7))])
    assert check_resumes(engine, handle) == [{"item": 1, "y": 1}, Punctuation(item=1)]
    engine.append("u", [{"k": 9, "z": 0}])
    assert check_resumes(engine, handle)[-1] == Punctuation(item=[1, 9])


def test_three_inputs_and_all_columns_equal_to_the_key(engine: ManualEngine) -> None:
    sql = "SELECT a.k AS ak, b.k AS bk, u.z FROM a JOIN b ON a.k = b.k JOIN u ON b.k = u.k"
    handle = engine.register(sql, materialize=False)
    engine.append("a", [Punctuation(k=1)])
    engine.append("b", [{"k": 1, "y": 1}, Punctuation(k=1)])
    assert check_resumes(engine, handle) == []
    engine.append("u", [{"k": 1, "z": 0}])
    assert check_resumes(engine, handle) == [Punctuation(ak=1, bk=1)]


def test_derived_streams_carry_punctuations_on(engine: ManualEngine) -> None:
    engine.derive_stream("d", "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k")
    engine.derive_stream("e", "SELECT k AS key FROM d WHERE y > 0")
    handles = [engine.register(f"SELECT * FROM {name}") for name in ("d", "e")]
    engine.append("a", [{"k": 1, "x": "a"}, Punctuation(k=1)])
    engine.derive()
    engine.append("b", [{"k": 1, "y": 1}, Punctuation(k=1), {"k": 2, "y": 0}])
    engine.derive()
    for _ in range(2):
        assert check_resumes(engine, handles[0]) == [{"k": 1, "y": 1}, Punctuation(k=1)]
        assert check_resumes(engine, handles[1]) == [{"key": 1}, Punctuation(key=1)]
        for name in ("a", "b", "d", "e"):
            engine.take(name)
        engine.derive()
    assert engine.inbox.closed(5) is not None, "the closed set of the second derived stream binds"


def test_derived_stream_in_small_pushes(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tureen.pipeline.derivation.PUSH_ROWS", 2)
    engine.derive_stream("d", "SELECT k, x FROM a WHERE k <> 7")
    items = [each for number in range(5) for each in ({"k": number, "x": "r"}, Punctuation(k=number))]
    engine.append("a", [Punctuation(k=9), *items, {"k": 7, "x": "r"}, Punctuation(x="end")])
    engine.derive()
    handle = engine.register("SELECT k, x FROM d")
    assert check_resumes(engine, handle) == [Punctuation(k=9), *items, Punctuation(x="end")]
