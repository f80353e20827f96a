"""Punctuations of a pot: random pushes against the plain twin, with restarts, trimmed segments and retries; damage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import select

from tests.examples import example_settings
from tureen.closed.rules import NO_RULES, Rules
from tureen.errors import DamagedFile, KeyConflict, StorageFailed, TureenError
from tureen.pipeline.sink import BatchSink
from tureen.pipeline.verifying import repair_pot, verify_pot
from tureen.pot import log
from tureen.pot.catalog_tables import closed_files
from tureen.pot.heads import log_directory
from tureen.pot.log import LogWriter, segments
from tureen.pot.pending_rejections import all_rejected
from tureen.pot.sweep import sweep
from tureen.punctuation import Punctuation, Range
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.punctuations import PunctuatedStream

SCHEMA = "k INT, s STRING, ts TIMESTAMP"
BASE = datetime(2026, 1, 1, tzinfo=UTC)

KEYS, TEXTS = st.integers(0, 9), st.sampled_from(["a", "b", "c", "d"])
TIMES = st.integers(0, 40).map(lambda seconds: BASE + timedelta(seconds=seconds))
ROWS = st.builds(lambda k, s, ts: {"k": k, "s": s, "ts": ts}, st.none() | KEYS, st.none() | TEXTS, TIMES)
PUNCTUATIONS = st.one_of(
    KEYS.map(lambda k: Punctuation(k=k)),
    st.lists(TEXTS, min_size=1, max_size=2).map(lambda texts: Punctuation(s=texts)),
    st.builds(lambda k, s: Punctuation(k=k, s=s), KEYS, TEXTS),
    TIMES.map(lambda ts: Punctuation(ts=Range(high=ts))),
    st.builds(lambda k, ts: Punctuation(k=k, ts=Range(low=ts, low_open=True)), KEYS, TIMES),
)
PUSHES = st.lists(ROWS | ROWS | ROWS | PUNCTUATIONS, min_size=1, max_size=8)
STEPS = st.lists(PUSHES | PUSHES | st.sampled_from(["take", "trim", "restart", "retry"]), max_size=14)
RULES = st.sampled_from([NO_RULES, NO_RULES, Rules(("k",)), Rules(("k", "s")), Rules((), 5_000_000), Rules(("s",), 0)])


def row(k: int | None, s: str | None = None, second: int = 0) -> dict[str, Any]:
    return {"k": k, "s": s, "ts": BASE + timedelta(seconds=second)}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManualEngine:
    """A pot with a stream; every push is in a segment of its own."""
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    opened = ManualEngine(tmp_path)
    opened.create_stream("s", SCHEMA, "ts")
    return opened


def numbered(engine: ManualEngine) -> list[dict[str, Any]]:
    """All tuples of the stream, in the order of their ids."""
    answer = engine.invoker.answer_once("SELECT k, s, ts FROM s")
    return sorted(answer.table.to_pylist(), key=str)


TRIMMED = [[Punctuation(k=1), row(2)], [row(3)], "take", "trim", "restart", [row(1), row(2), row(4, second=9)], "retry"]
"""The first records are removed, and known from files and from the catalog only."""


@example(TRIMMED, NO_RULES)
@example(TRIMMED, Rules(("k",), 5_000_000))
@given(STEPS, RULES)
@example_settings(30, shrink=False)
def test_pots_decide_as_the_plain_twin(steps: list[Any], rules: Rules) -> None:
    lateness = None if rules.lateness is None else timedelta(microseconds=rules.lateness)
    twin = PunctuatedStream(rules.unique, "ts" if lateness is not None else None, lateness)
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "SEGMENT_BYTES", 1)
        engine = ManualEngine(Path(directory))
        engine.create_stream("s", SCHEMA, "ts", rules=rules)
        pushed: list[tuple[list[Any], int]] = []
        for step in steps:
            if isinstance(step, list):
                before = len(twin.accepted), len(twin.rejected)
                twin.push(step)
                position = engine.append("s", step, key=f"push {len(pushed)}")
                rejected = len(twin.rejected) - before[1]
                assert (position.added, position.rejected) == (len(twin.accepted) - before[0], rejected)
                pushed.append((step, rejected))
            elif step == "take":
                engine.take("s", 2)
            elif step == "trim":
                engine.inbox.trim()
            elif step == "restart":
                engine.close()
                engine = ManualEngine(Path(directory))
            else:
                for number, (items, rejected) in enumerate(pushed):
                    again = engine.append("s", items, key=f"push {number}")
                    assert (again.added, again.rejected) == (0, rejected)
            assert numbered(engine) == sorted(twin.accepted, key=str)
            assert len(all_rejected(engine.catalog, "s")) == len(twin.rejected)
        assert sorted(str(each["row"]["k"]) for each in all_rejected(engine.catalog, "s")) == sorted(
            str(each["k"]) for each in twin.rejected
        )
        engine.close()


def closed_paths(engine: ManualEngine) -> list[str]:
    with engine.catalog.read() as tx:
        return list(tx.execute(select(closed_files.c.path).order_by(closed_files.c.end)).scalars())


def trim_all(engine: ManualEngine) -> None:
    """Take all records, and remove all segments but the last."""
    engine.take("s")
    engine.inbox.trim()


def test_punctuations_of_removed_segments_are_in_few_files(engine: ManualEngine) -> None:
    for k in range(40):
        engine.append("s", [row(k), Punctuation(k=k)])
        trim_all(engine)
    assert len(segments(log_directory(engine.catalog.root, 1))) == 1
    assert 1 <= len(closed_paths(engine)) <= 6
    sweep(engine.catalog, grace=0, abandoned_after=0)
    assert sorted(
        str(path.relative_to(engine.catalog.root)) for path in engine.catalog.root.glob("closed/*/*")
    ) == sorted(closed_paths(engine))
    engine.close()
    again = ManualEngine(engine.catalog.root)
    assert again.append("s", [row(k) for k in range(41)]).rejected == 40
    assert again.inbox.closed(1) == {
        "values": [{"columns": ["k"], "count": 40}],
        "ranges": [],
        "patterns": [],
        "unique_keys": None,
        "highest_time": None,
    }


def test_damaged_closed_file_stops_pushes_until_it_is_given_up(engine: ManualEngine) -> None:
    for k in range(3):
        engine.append("s", [Punctuation(k=k)])
    trim_all(engine)
    root = engine.catalog.root
    (path,) = closed_paths(engine)
    engine.close()
    data = bytearray((root / path).read_bytes())
    data[2] ^= 0x10
    (root / path).write_bytes(data)
    again = ManualEngine(root)
    for _ in range(2):
        with pytest.raises(DamagedFile, match="damaged"):
            again.append("s", [row(1)])
    closed = again.inbox.closed(1)
    assert closed is not None
    assert "damaged" in closed["error"]
    damaged = verify_pot(again.catalog, lambda *_: None).damaged
    assert [(damage.path, damage.lost) for damage in damaged] == [(path, True)]
    assert repair_pot(again.catalog).files == 0, "what is lost is not repaired"
    again.close()
    repaired = ManualEngine(root)
    assert repaired.append("s", [row(1), row(2)]).rejected == 1, "the last punctuation is in the log still"
    assert ["lost" in each["reason"] for each in all_rejected(repaired.catalog, "s")] == [True, False]
    repaired.close()


def test_failed_push_closes_nothing(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.append("s", [Punctuation(k=1)])

    def fail(*_: Any) -> None:
        raise StorageFailed("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(LogWriter, "append", fail)
        with pytest.raises(StorageFailed):
            engine.append("s", [Punctuation(k=2)])
    assert engine.append("s", [row(1), row(2)]).rejected == 1


def test_key_with_other_punctuations_is_a_conflict(engine: ManualEngine) -> None:
    engine.append("s", [row(1), Punctuation(k=1)], key="same")
    assert engine.append("s", [row(1), Punctuation(k=1)], key="same").added == 0
    for items in ([row(1), Punctuation(k=2)], [Punctuation(k=1), row(1)], [row(1)]):
        with pytest.raises(KeyConflict):
            engine.append("s", items, key="same")


def test_sinks_are_refused_from_the_first_punctuation_on(engine: ManualEngine) -> None:
    root, names = engine.catalog.root, ["k", "s", "ts"]
    running = BatchSink(root, "s", names, None)
    message = running.write(iter(()))
    engine.append("s", [Punctuation(k=1)])
    for write in (lambda: BatchSink(root, "s", names, None), lambda: running.commit([message])):
        with pytest.raises(TureenError, match="stream 's' has punctuations: rows can only be pushed to it"):
            write()
    engine.create_stream("u", "k INT", rules=Rules(("k",)))
    with pytest.raises(TureenError, match="stream 'u' has a unique key or a lateness"):
        BatchSink(root, "u", ["k"], None)


def test_streams_without_punctuations_have_no_gate(engine: ManualEngine) -> None:
    engine.append("s", [row(1)])
    assert engine.inbox.closed(1) is None
    assert 1 not in engine.inbox._gates
