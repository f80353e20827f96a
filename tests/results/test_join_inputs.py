"""Joins by key index: what is found does not depend on how it is found, and equal hashes are compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tureen.joining import join_evaluation
from tureen.results import join_inputs
from tureen.soup.tables import Dimensions
from tureen.stems import key_index
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> ManualEngine:
    engine = ManualEngine(tmp_path)
    for name, size in (("small", 4), ("large", 300)):
        engine.create_stream(name, "k BIGINT, s STRING, n INT, ts TIMESTAMP", time="ts", clock="stream")
        rows = [{"k": n % 7, "s": f"v{n % 5}", "n": n, "ts": START + timedelta(seconds=n)} for n in range(size)]
        for first in range(0, size, 100):
            engine.push(name, rows[first : first + 100])
    return engine


@pytest.mark.parametrize(
    "condition",
    [
        "a.k = b.k",
        "a.s = b.s",
        "a.s = b.s AND a.k = b.k",
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
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 1 << 30)
    scanned = list(engine.invoker.answer_once(sql))
    probes: list[int] = []
    probe = join_inputs.StreamInput.probe

    def counting_probe(self: join_inputs.StreamInput, columns: object, keys: object, valid: object) -> object:
        pairs = probe(self, columns, keys, valid)  # type: ignore[arg-type]
        probes.append(pairs is not None)
        return pairs

    monkeypatch.setattr(join_inputs.StreamInput, "probe", counting_probe)
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 0)
    monkeypatch.setattr(join_inputs, "PROBE_COST", 0)
    assert list(engine.invoker.answer_once(sql)) == scanned
    # The rows of an outer join's own side that fail a condition of ON have no partner, so not all of them are probed.
    assert probes == ([] if join == "RIGHT JOIN" and "AND b." in condition else [True])
    assert len(scanned) > 4


def test_a_content_of_a_table_is_indexed_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Dimensions(engine.catalog)
    tables.create("t", "k BIGINT, w INT", [{"k": n % 9, "w": n} for n in range(200)])
    sql = "SELECT a.n AS x, t.w FROM small a JOIN t ON a.k = t.k WHERE t.w % 3 = 0"
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 1 << 30)
    scanned = list(engine.invoker.answer_once(sql))
    assert len(scanned) > 20
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 0)
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


def test_texts_with_equal_hashes_are_compared(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def same_hash(column: pa.Array, _domain: str) -> np.ndarray:
        return np.zeros(len(column), np.int64)

    sql = "SELECT a.n AS x, b.n AS y FROM small a JOIN large b ON a.s = b.s"
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 1 << 30)
    scanned = list(engine.invoker.answer_once(sql))
    monkeypatch.setattr(join_evaluation, "PROBE_SHARE", 0)
    monkeypatch.setattr(join_inputs, "PROBE_COST", 0)
    monkeypatch.setattr(key_index, "codes_of", same_hash)
    monkeypatch.setattr(join_evaluation, "codes_of", same_hash)
    assert list(engine.invoker.answer_once(sql)) == scanned
