"""Rows of kept joins whose tuples were lost, dropped, or arrived in another order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tureen.pipeline import arrival
from tureen.pipeline.repair import give_up_lost
from tureen.pot.parts import Parts
from tureen.pot.runs import live_runs
from tureen.pot.streams import find_stream
from tureen.soup.integrity import verify
from tureen.stems import run
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
SQL = "SELECT a.n AS x, b.n AS y FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize("in_order", [True, False])
def test_lost_tuples_are_not_in_answers_of_kept_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_order: bool
) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 10)
    monkeypatch.setattr(run, "BLOCK_ROWS", 10)
    engine = ManualEngine(tmp_path)
    for name, keys in (("a", 30), ("b", 15)):
        engine.create_stream(name, "k INT, n INT, ts TIMESTAMP", time="ts", clock="stream")
        rows = [{"k": n, "n": n, "ts": START + timedelta(seconds=n)} for n in range(keys)]
        engine.push(name, rows if in_order else rows[1:] + rows[:1])
    kept, lazy = engine.register(SQL), engine.register(SQL, materialize=False)
    engine.keep_joins()
    assert engine.invoker.explain(kept)["kept_join"]["used"]
    before = list(engine.invoke(kept))
    assert before == list(engine.invoke(lazy))
    assert len(before) == 15
    with engine.catalog.read() as tx:
        stream = find_stream(tx, "a")
        (of_stream,) = live_runs(tx, stream.id)
    path = tmp_path / of_stream.path
    data = bytearray(path.read_bytes())
    start, length, _ = Parts(path)._entries[0]
    data[start + length // 2] ^= 255
    path.write_bytes(data)
    engine.close()
    assert verify(tmp_path).damaged
    again = ManualEngine(tmp_path)
    assert give_up_lost(again.catalog, stream) == 10
    assert list(again.invoke(kept)) == list(again.invoke(lazy)) == before[10:]
