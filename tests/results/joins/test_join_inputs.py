"""Joins by key index: what is found does not depend on how it is found, and equal hashes are compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining import join_evaluation
from tureen.pipeline import arrival
from tureen.results.joins import join_inputs
from tureen.soup.tables import Dimensions
from tureen.stems import key_index
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    engine = ManualEngine(tmp_path)
    for name, size, kind in (("small", 4, "DECIMAL(8,2)"), ("large", 300, "DECIMAL(38,10)")):
        engine.create_stream(name, f"k BIGINT, s STRING, m {kind}, n INT, ts TIMESTAMP", time="ts", clock="stream")
        rows = [
            {"k": n % 7, "s": f"v{n % 5}", "m": Decimal(n % 5), "n": n, "ts": START + timedelta(seconds=n)}
            for n in range(size)
        ]
        for first in range(0, size, 100):
            engine.push(name, rows[first : first + 100])
    return engine


def probe_never(patch: pytest.MonkeyPatch) -> None:
    """Let all joins scan."""
    patch.setattr(join_inputs, "PROBE_SHARE", 1 << 30)
    patch.setattr(join_inputs, "MANY_KEYS_COST", 0)


def probe_always(patch: pytest.MonkeyPatch) -> None:
    """Let all joins use key indexes."""
    patch.setattr(join_inputs, "PROBE_SHARE", 0)
    patch.setattr(join_inputs, "PROBE_COST", 0)


@pytest.mark.parametrize(
    "condition",
    [
        "a.k = b.k",
        "a.s = b.s",
        "a.s = b.s AND a.k = b.k",
        "a.m = b.m",
        "a.k = b.m AND a.m = b.m",
        "a.m = b.m AND a.s = b.s AND a.k = b.k",
        "a.k = b.k AND b.n % 2 = 0",
        "a.k = b.k AND b.n > 250",
        "a.k = b.k AND a.n < b.n",
    ],
)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN"])
def test_index_gives_the_same_rows_as_a_scan(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, condition: str, join: str
) -> None:
    sql = f"SELECT a.n AS x, b.n AS y FROM small a {join} large b [ROWS 220] ON {condition}"
    probe_never(monkeypatch)
    scanned = list(engine.invoker.answer_once(sql))
    probes: list[int] = []
    probe = join_inputs.StreamInput.probe

    def counting_probe(self: join_inputs.StreamInput, columns: object, keys: object, valid: object) -> object:
        pairs = probe(self, columns, keys, valid)  # type: ignore[arg-type]
        probes.append(pairs is not None)
        return pairs

    monkeypatch.setattr(join_inputs.StreamInput, "probe", counting_probe)
    probe_always(monkeypatch)
    assert list(engine.invoker.answer_once(sql)) == scanned
    # The rows of an outer join's own side that fail a condition of ON have no partner, so not all of them are probed.
    assert probes == ([] if join == "RIGHT JOIN" and "AND b." in condition else [True])
    assert len(scanned) > 4


def test_a_content_of_a_table_is_indexed_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Dimensions(engine.catalog)
    tables.create("t", "k BIGINT, w INT", [{"k": n % 9, "w": n} for n in range(200)])
    sql = "SELECT a.n AS x, t.w FROM small a JOIN t ON a.k = t.k WHERE t.w % 3 = 0"
    probe_never(monkeypatch)
    scanned = list(engine.invoker.answer_once(sql))
    assert len(scanned) > 20
    probe_always(monkeypatch)
    built: list[int] = []
    build = key_index.KeyIndex.of

    def counting_build(columns: Sequence[tuple[pa.Array, str]]) -> key_index.KeyIndex:
        built.append(len(columns))
        return build(columns)

    monkeypatch.setattr(key_index.KeyIndex, "of", counting_build)
    for _ in range(3):
        assert list(engine.invoker.answer_once(sql)) == scanned
    assert built == [1]
    tables.replace("t", [{"k": 2, "w": 3 * n} for n in range(100)])
    assert [row["w"] for row in engine.invoker.answer_once(sql)] == [3 * n for n in range(100)]
    assert built == [1, 1]


@pytest.mark.parametrize("column", ["s", "m"])
def test_values_with_equal_hashes_are_compared(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    def same_hash(column: pa.Array, _domain: str) -> np.ndarray:
        return np.zeros(len(column), np.int64)

    sql = f"SELECT a.n AS x, b.n AS y FROM small a JOIN large b ON a.{column} = b.{column}"
    probe_never(monkeypatch)
    scanned = list(engine.invoker.answer_once(sql))
    probe_always(monkeypatch)
    monkeypatch.setattr(key_index, "codes_of", same_hash)
    monkeypatch.setattr(join_evaluation, "codes_of", same_hash)
    assert list(engine.invoker.answer_once(sql)) == scanned


NUMBERS = {"BIGINT": (19, 0), "INT": (9, 0), "DECIMAL(6,2)": (6, 2), "DECIMAL(9,3)": (9, 3), "DECIMAL(38,10)": (38, 10)}
"""Types of numbers: the digits of their values, and how many of these are behind the point."""


@st.composite
def numbers(draw: st.DrawFn, kind: str) -> Decimal | int | None:
    """NULL, small numbers that other types have too, and numbers of all digits."""
    digits, scale = NUMBERS[kind]
    largest = min(10**digits - 1, 2**63 - 1) if scale == 0 else 10**digits - 1
    whole = st.integers(-3, 3).map(lambda number: number * 10**scale)
    tenths = st.integers(-20, 20).map(lambda number: number * 10**scale // 10)
    unscaled = draw(st.none() | whole | tenths | st.integers(-largest, largest) | st.just(largest))
    if unscaled is None or scale == 0:
        return unscaled
    return Decimal(f"{unscaled}e-{scale}")


@example_settings(25)
@given(st.data(), st.sampled_from(sorted(NUMBERS)), st.sampled_from([kind for kind in NUMBERS if "(" in kind]))
def test_decimals_are_found_by_index(data: st.DataObject, left: str, right: str) -> None:
    few = data.draw(st.lists(numbers(left), min_size=1, max_size=5))
    many = [*data.draw(st.lists(numbers(right), max_size=20)), *map(Decimal, range(-3, 4)), None]
    sql = "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.v = b.v ORDER BY x, y"
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        engine = ManualEngine(Path(directory))
        for name, kind, values in (("a", left, few), ("b", right, many)):
            engine.create_stream(name, f"v {kind}, n INT, ts TIMESTAMP", time="ts", clock="stream")
            rows = [{"v": value, "n": n, "ts": START + timedelta(seconds=n)} for n, value in enumerate(values)]
            engine.push(name, rows)
        probe_never(patch)
        scanned = list(engine.invoker.answer_once(sql))
        probe_always(patch)
        indexed = list(engine.invoker.answer_once(sql))
        entries = engine.invoker.explain_once(sql)["inputs"]
    assert indexed == scanned == _judged(sql, {"a": (left, few), "b": (right, many)})
    assert [entry["joined_by"] for entry in entries] == ["scan", "key index"]


def _judged(sql: str, tables: dict[str, tuple[str, list[Any]]]) -> list[dict[str, Any]]:
    """The answer of DuckDB."""
    with duckdb.connect() as connection:
        for name, (kind, values) in tables.items():
            connection.execute(f"CREATE TABLE {name} (v {kind}, n INT)")
            for n, value in enumerate(values):
                text = "NULL" if value is None else f"'{value}'"
                connection.execute(f"INSERT INTO {name} VALUES (CAST({text} AS {kind}), {n})")
        # Without digits that DuckDB's common type of two decimals would not have room for.
        wide = sql.replace("a.v = b.v", "CAST(a.v AS DECIMAL(38,10)) = CAST(b.v AS DECIMAL(38,10))")
        rows: list[dict[str, Any]] = connection.sql(wide).to_arrow_table().to_pylist()
        return rows


@pytest.mark.parametrize("columns", [["k"], ["k", "s"]])
def test_many_keys_are_looked_up_in_indexes_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str]
) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    monkeypatch.setattr(arrival, "KEYED_ROWS", 50)
    engine = ManualEngine(tmp_path)
    for name, keys in (("a", 90), ("b", 70)):
        engine.create_stream(name, "k BIGINT, s STRING, n INT, ts TIMESTAMP", time="ts", clock="stream")
        rows = [
            {"k": None if n % 11 == 0 else n % keys, "s": f"v{n % 3}", "n": n, "ts": START + timedelta(seconds=n)}
            for n in range(200)
        ]
        for first in range(0, len(rows), 100):
            engine.push(name, rows[first : first + 100])
    condition = " AND ".join(f"a.{column} = b.{column}" for column in columns)
    sql = f"SELECT a.n AS x, b.n AS y FROM a [ROWS 190] JOIN b ON {condition}"
    scanned = list(engine.invoker.answer_once(sql))
    assert len(scanned) > 50
    assert _joined_by(engine, sql) == ["scan", "scan"], "no index is built for many keys"
    engine.register(sql)
    engine.index_keys()
    assert list(engine.invoker.answer_once(sql)) == scanned
    assert "key index" in _joined_by(engine, sql)
    selective = f"{sql} AND a.n % 5 = 1 AND b.n % 5 = 0"
    assert _joined_by(engine, selective) == ["scan", "scan"], "most tuples of the index are not in the input"


def _joined_by(engine: ManualEngine, sql: str) -> list[str]:
    return [entry["joined_by"] for entry in engine.invoker.explain_once(sql)["inputs"]]
