"""Joins by key indexes alone have the same joined tuples as evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tureen.join import InnerJoin
from tureen.joining.join_limits import JoinLimits
from tureen.pipeline import arrival, join_keeping
from tureen.pot.kept_joins import joins_to_keep
from tureen.results.joins import new_joined_tuples
from tureen.results.joins.index_join import Joined, joined_by_indexes
from tureen.results.joins.join_inputs import StreamInput
from tureen.stems.join_run import OpenJoinRun, concatenated
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "n INT, k BIGINT, j INT, s STRING, d DOUBLE, ts TIMESTAMP"
RANGE = "[RANGE 12 SECONDS]"


def rows(seed: int, first: int, count: int) -> list[dict[str, Any]]:
    """Tuples with repeated keys and NULLs, some of which are late."""
    random = np.random.default_rng(seed)
    return [
        {
            "n": n,
            "k": None if random.random() < 0.1 else int(random.integers(0, 12)),
            "j": int(random.integers(0, 3)),
            "s": f"s{random.integers(0, 6)}",
            "d": float(random.integers(0, 9)) / 2,
            "ts": START + timedelta(seconds=int(n - random.integers(0, 4))),
        }
        for n in range(first, first + count)
    ]


def joined(root: Path, sql: str) -> list[tuple[int, ...]]:
    """The ids and times of the joined tuples that are kept in several steps."""
    engine = ManualEngine(root)
    for name in "ab":
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    engine.register(sql, materialize=True)
    engine.index_keys()
    for step in range(3):
        # Streams of different sizes: the smaller one probes.
        for seed, (name, count) in enumerate({"a": 14 + 10 * step, "b": 25}.items()):
            engine.push(name, rows(10 * step + seed, 100 * step, count))
            engine.push(name, rows(10 * step + seed + 5, 100 * step + count, 9))
        engine.keep_joins()
    with engine.catalog.read() as tx:
        runs = [OpenJoinRun(root / run.path).tuples for join in joins_to_keep(tx) for run in join.runs]
    engine.close()
    tuples = concatenated(2, runs)
    return sorted(zip(*(ids.tolist() for ids in tuples.ids), tuples.times.tolist(), strict=True))


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each join was computed from indexes alone; runs are small and have indexes."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    monkeypatch.setattr(arrival, "KEYED_ROWS", 1)
    seen: list[bool] = []

    def spy(tree: InnerJoin, inputs: Sequence[StreamInput], limits: JoinLimits) -> Iterator[Joined] | None:
        parts = joined_by_indexes(tree, inputs, limits)
        seen.append(parts is not None)
        return parts

    monkeypatch.setattr(new_joined_tuples, "joined_by_indexes", spy)
    return seen


@pytest.mark.parametrize(
    ("sql", "is_used"),
    [
        ("SELECT a.n FROM a, b WHERE a.k = b.k", True),
        ("SELECT a.n FROM b, a WHERE a.k = b.k AND a.j = b.j", True),
        ("SELECT a.n FROM a, b WHERE a.d = b.d AND a.n > 20", True),
        (f"SELECT a.n FROM a {RANGE}, b {RANGE} WHERE a.k = b.k", True),
        ("SELECT x.n FROM a x, a y WHERE x.k = y.j", True),
        ("SELECT a.n FROM a, b WHERE a.k = b.k AND a.n < b.n", False),
        ("SELECT a.n FROM a, b WHERE a.k = b.k + 1", False),
        ("SELECT a.n FROM a, b WHERE a.s = b.s", False),
    ],
)
def test_joined_tuples_equal_those_of_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uses: list[bool], sql: str, is_used: bool
) -> None:
    by_index = joined(tmp_path / "indexes", sql)
    assert any(uses) is is_used
    monkeypatch.setattr(new_joined_tuples, "joined_by_indexes", lambda *_: None)
    assert by_index == joined(tmp_path / "evaluated", sql)
    assert len(by_index) > 50


def test_the_number_of_rows_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uses: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(join_keeping, "MAX_ROWS", 60)
    with caplog.at_level("INFO"):
        assert joined(tmp_path, "SELECT a.n FROM a, b WHERE a.k = b.k") == []
    assert all(uses)
    assert "the join would have" in caplog.text
