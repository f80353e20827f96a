"""The queries of a feed: a follower that knows them reads the same changes as one that lists them again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from tureen.position import BEGINNING
from tureen.results.following import followed
from tureen.results.invoke import Invoker
from tureen.soup.feed import ChangeReader
from tureen.soup.feed_parts import FeedChanges
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def _changes(changes: FeedChanges) -> list[tuple[str, str, str]]:
    return [(change.query, change.kind, str(change.row)) for change in changes]


@pytest.mark.parametrize("kept", [2, 256])
def test_a_follower_reads_what_a_new_one_reads(
    engine: ManualEngine, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(followed, "KEPT_MATCHES", kept)
    draw = random.Random(kept)
    for name in ("a", "b"):
        engine.create_stream(name, "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
    templates = Templates(engine.catalog, engine.invoker)
    reader = ChangeReader(engine.catalog, engine.invoker, templates, None, lambda _: None)
    texts = [
        "SELECT v FROM a WHERE k >= {} AND v > -{}",
        "SELECT v FROM a WHERE k = {} AND upper('x') = 'X'",
        "SELECT v FROM b WHERE k <> {} AND v > -{}",
        "SELECT k, sum(v) t FROM a WHERE k > {} GROUP BY k",
        "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE a.k = {}",
    ]
    queries: list[str] = []
    follower = reader.feed()
    positions = [BEGINNING, follower.read(None).position()]
    seen = 0
    for step in range(20):
        for _ in range(draw.randrange(1, 4)):
            text = draw.choice(texts + texts[:2] * 2).format(draw.randrange(4), draw.randrange(1, 9))
            queries.append(engine.register(text, materialize=False))
        if len(queries) > 16:
            engine.unregister(queries.pop(draw.randrange(len(queries))))
        if step == 10:
            templates.register("SELECT v FROM a WHERE k = :k", [{"k": 1}, {"k": 2}], None)
        rows = [{"k": draw.randrange(4), "v": step, "ts": BASE + timedelta(seconds=step)} for _ in range(3)]
        engine.append(draw.choice("ab"), rows[: draw.randrange(4)])
        # Mostly from where the last read ended, but from any earlier position too.
        since = positions[-1] if draw.random() < 0.7 else draw.choice(positions)
        # Another process has matched nothing yet, so it reads every query.
        alone = Invoker(engine.catalog)
        other = ChangeReader(engine.catalog, alone, Templates(engine.catalog, alone), None, lambda _: None)
        changes, expected = follower.read(since), other.all(since)
        assert _changes(changes) == _changes(expected)
        seen += len(changes)
        positions.append(changes.position())
    assert seen > 50
    follower.close()
    assert not len(engine.invoker.followers.queries)


def test_only_queries_with_a_match_are_read(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_stream("a", "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream")
    handles = [engine.register(f"SELECT v FROM a WHERE k = {k}", materialize=False) for k in range(20)]
    templates = Templates(engine.catalog, engine.invoker)
    follower = ChangeReader(engine.catalog, engine.invoker, templates, None, lambda _: None).feed()
    position = follower.read(None).position()
    read: list[str] = []
    new_rows = engine.invoker.new_rows

    def counted(handle: str, *args: object, **options: object) -> object:
        read.append(handle)
        return new_rows(handle, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.invoker, "new_rows", counted)
    for k in (3, 5):
        engine.append("a", [{"k": k, "v": 1, "ts": BASE}])
        changes = follower.read(position)
        assert [change.query for change in changes] == [handles[k]]
        position = changes.position()
        read_last, read[:] = list(read), []
    assert read_last == [handles[5]]
    follower.close()
