"""Micro-batches of a source that are pushed: each once, whatever Spark repeats."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tureen.closed.rules import LastRows, Rules
from tureen.pipeline.source_pushing import SourcePushing
from tureen.pot.streams import find_stream
from tureen.testing.manual_engine import ManualEngine

RULES = Rules(last_rows=LastRows("closed", ("k",)))


def rows(*values: tuple[int, bool]) -> pa.Table:
    return pa.table({"k": pa.array([k for k, _ in values], pa.int32()), "closed": [closed for _, closed in values]})


def pushing(engine: ManualEngine, checkpoint: Path) -> SourcePushing:
    checkpoint.mkdir(exist_ok=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "5c1f"}))
    with engine.catalog.read() as tx:
        stream = find_stream(tx, "s")
    return SourcePushing(engine.inbox, stream, checkpoint, lambda: 0)


def answered(engine: ManualEngine) -> list[int]:
    return [row["k"] for row in engine.invoker.answer_once("SELECT k FROM s ORDER BY k")]


def test_repeated_batches_change_nothing(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("s", "k INT, closed BOOLEAN", rules=RULES)
    source = pushing(engine, tmp_path / "checkpoint")
    source.push(rows((1, False), (2, True)), 0)
    source.push(rows((1, False), (2, True)), 0)
    source.push(rows((2, True), (1, False)), 0)
    source.push(rows(), 1)
    assert answered(engine) == [1, 2]
    source.push(rows((2, False), (3, False)), 2)
    assert answered(engine) == [1, 2, 3], "2 was closed by an earlier batch"
    engine.take("s")
    engine.inbox.trim()
    engine.close()
    engine = ManualEngine(tmp_path / "pot")
    source = pushing(engine, tmp_path / "checkpoint")
    source.push(rows((2, False), (3, False)), 2)
    assert answered(engine) == [1, 2, 3], "the last batch is repeated after a crash"
    source.push(rows((2, False), (4, False)), 3)
    assert answered(engine) == [1, 2, 3, 4]
    engine.close()
