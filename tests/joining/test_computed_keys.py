"""Equalities of expressions: the joined rows are those of all pairs that satisfy them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.evaluation import duck
from tureen.joining import computed_keys, join_evaluation
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "i INT, l BIGINT, d DOUBLE, f FLOAT, s STRING, m DECIMAL(9, 2), y DATE, flag BOOLEAN, ts TIMESTAMP"
ROWS = 60

CONDITIONS = [
    "a.i % 7 = b.i",
    "b.l = a.i % 5",
    "a.i + 1 = b.l * 2",
    "upper(a.s) = upper(b.s)",
    "concat(a.s, 'x') = concat(b.s, b.s)",
    "a.d * 2 = b.d",
    "a.d / 2 = b.f",
    "-a.d = b.d * 0",
    "CAST(a.ts AS DATE) = b.y",
    "date_add(a.y, 1) = b.y",
    "(a.i > 5) = b.flag",
    "a.m * 2 = b.m",
    "a.m + a.i = b.m",
    "coalesce(a.l, 3) = b.i",
    "a.i % 7 = b.i AND upper(a.s) = upper(b.s)",
    "a.i % 7 = b.i AND a.d < b.d",
    "a.i % 7 = b.i OR a.s = b.s",
    "a.i % 7 = b.i + a.l",
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManualEngine]:
    """Two streams with the same rows in another order, NULLs and equal values among them."""
    engine = ManualEngine(tmp_path_factory.mktemp("pot"), lambda: to_micros(START + timedelta(days=9)))
    for name, step in (("a", 1), ("b", 7)):
        engine.create_stream(name, COLUMNS, time="ts")
        engine.append(name, [_row(number * step % ROWS) for number in range(ROWS)])
    yield engine
    engine.close()


def _row(number: int) -> dict[str, Any]:
    numbers = None if number % 11 == 4 else number % 13
    floats = [0.0, -0.0, float("nan"), float("inf"), None, 1.5, 3.0, -1.5]
    return {
        "i": numbers,
        "l": None if number % 9 == 2 else number % 6,
        "d": floats[number % 8],
        "f": floats[number % 7],
        "s": None if number % 10 == 9 else "aAbBx"[number % 5] * (number % 3),
        "m": None if numbers is None else numbers / 4,
        "y": date(2026, 1, 1) + timedelta(days=number % 4),
        "flag": [True, False, None][number % 3],
        "ts": START + timedelta(hours=number),
    }


def _rows(engine: ManualEngine, sql: str) -> list[dict[str, Any]]:
    query = engine.register(sql, materialize=False)
    try:
        return list(engine.invoke(query))
    finally:
        engine.unregister(query)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize(
    "template",
    [
        "SELECT a.ts, b.ts AS bts FROM a JOIN b ON {}",
        "SELECT a.ts, b.ts AS bts FROM b FULL JOIN a ON {}",
        "SELECT a.ts FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {})",
    ],
    ids=["inner", "full", "anti"],
)
def test_joined_rows_are_those_of_all_pairs(
    engine: ManualEngine, condition: str, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = template.format(condition)
    rows = _rows(engine, sql)
    monkeypatch.setattr(join_evaluation, "has_computed_keys", lambda _: False)
    assert rows == _rows(engine, sql)


WITHOUT_KEYS = [
    "date_add(a.y, 1) = b.y",  # DuckDB adds an interval, which makes it a TIMESTAMP.
    "a.i % 7 = b.i OR a.s = b.s",
    "a.i % 7 = b.i + a.l",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_have_rows_and_keys(engine: ManualEngine, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    original = computed_keys.computed_keys

    def counted(*arguments: Any) -> Any:
        keys = original(*arguments)
        made.append(keys is not None)
        return keys

    monkeypatch.setattr(join_evaluation, "computed_keys", counted)
    assert _rows(engine, f"SELECT a.ts FROM a JOIN b ON {condition}")
    assert any(made) == (condition not in WITHOUT_KEYS)


def test_expressions_that_raise_do_so_only_for_pairs(engine: ManualEngine) -> None:
    """A row without a pair that satisfies the comparisons is not evaluated."""
    assert _rows(engine, "SELECT a.ts FROM a JOIN b ON 12 / a.l = b.d * 2 AND a.l > b.l AND b.l >= 0")
    with pytest.raises(QueryFailed, match=r"(?i)division by zero"):
        _rows(engine, "SELECT a.ts FROM a JOIN b ON 12 / a.l = b.d * 2 AND a.l >= b.l")


def test_pairs_that_are_not_equal_are_no_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ManualEngine(tmp_path, lambda: to_micros(START))
    for name in "ab":
        engine.create_stream(name, "i INT")
        engine.append(name, [{"i": number} for number in range(500)])
    counted: list[int] = []
    original = join_evaluation.JoinEvaluation._count

    def count(evaluation: Any, candidates: int, rows: int | None) -> None:
        counted.append(candidates)
        original(evaluation, candidates, rows)

    monkeypatch.setattr(join_evaluation.JoinEvaluation, "_count", count)
    assert len(_rows(engine, "SELECT a.i FROM a JOIN b ON a.i + 1 = b.i")) == 499
    assert counted == [499]
    engine.close()


def test_texts_are_not_held(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of a side may take more memory than Arrow's columns can have."""
    columns: list[pa.DataType] = []
    original = duck.run

    def run(*arguments: Any) -> Any:
        table = original(*arguments)
        columns.append(table.column(0).type)
        return table

    monkeypatch.setattr(computed_keys, "run", run)
    assert _rows(engine, "SELECT a.ts FROM a JOIN b ON upper(a.s) = upper(b.s)")
    assert columns == [pa.int64(), pa.int64()]


def test_few_pairs_need_no_keys(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inequality leaves fewer pairs than the sides have rows, for which expressions would be evaluated."""
    monkeypatch.setattr(computed_keys, "run", None)
    assert not _rows(engine, "SELECT a.ts FROM a JOIN b ON upper(a.s) = upper(b.s) AND a.ts > b.ts + INTERVAL 59 HOURS")
