"""Final groups of streams that keep what is needed: their tuples stay until they are final."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.pipeline.needed_streams import SCHEMA, START, at, derive_all, needed_streams, push, row
from tureen.closed.rules import Rules
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualClock, ManualEngine


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START + timedelta(days=1))


@pytest.fixture
def soup(tmp_path: Path, clock: ManualClock) -> Iterator[ManualEngine]:
    engine = ManualEngine(tmp_path / "pot", clock)
    yield engine
    engine.close()


def test_final_groups_need_their_tuples_until_they_are_final(tmp_path: Path, clock: ManualClock) -> None:
    soup = ManualEngine(tmp_path / "final", clock)
    needed_streams(soup, "s")
    soup.derive_stream("d", "SELECT k, count(*) AS n FROM s GROUP BY k EMIT FINAL")
    push(soup, "s", row(1, 1))
    push(soup, "s", row(2, 2))
    push(soup, "s", row(1, 3), Punctuation(k=2))
    derive_all(soup)
    assert soup.free() == 1
    soup.close()
    soup = ManualEngine(tmp_path / "final", clock)
    push(soup, "s", row(1, 4), Punctuation(k=1))
    derive_all(soup)
    assert soup.free() == 3
    groups = [(each["k"], each["n"]) for each in soup.invoker.answer_once("SELECT k, n FROM d")]
    assert groups == [(2, 1), (1, 3)]
    soup.close()


def test_final_groups_are_the_same_after_freeing_and_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    """The group of the highest time is final by its key; others become final later, once each."""
    soup = ManualEngine(tmp_path / "late", clock)
    needed_streams(soup, "s", lateness=1)
    soup.derive_stream("d", "SELECT k, count(*) AS n, window_start FROM s [TUMBLE 5 SECONDS] GROUP BY k EMIT FINAL")
    push(soup, "s", row(1, 1), row(2, 2))
    push(soup, "s", row(3, 20), Punctuation(k=3))
    derive_all(soup)
    soup.free()
    soup.close()
    soup = ManualEngine(tmp_path / "late", clock)
    push(soup, "s", row(4, 30))
    soup.derive()
    groups = [(each["k"], each["n"]) for each in soup.invoker.answer_once("SELECT k, n FROM d")]
    assert sorted(groups) == [(1, 1), (2, 1), (3, 1)]
    soup.close()


def test_final_groups_of_joins_need_their_tuples_until_they_are_final(soup: ManualEngine) -> None:
    needed_streams(soup, "a", "b")
    soup.derive_stream("d", "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k EMIT FINAL")
    push(soup, "a", row(1, 1), Punctuation(k=1))
    push(soup, "b", row(1, 2), row(1, 3))
    push(soup, "b", {"k": None, "ts": at(4)})
    derive_all(soup)
    # NULL equals nothing.
    assert soup.free() == 1
    push(soup, "b", Punctuation(k=1))
    # The group is final, but not reported yet.
    assert soup.free() == 0
    derive_all(soup)
    assert soup.free() == 2
    assert [(each["k"], each["n"]) for each in soup.invoker.answer_once("SELECT k, n FROM d")] == [(1, 2)]


def test_unique_keys_that_have_not_arrived_keep_groups_open(soup: ManualEngine) -> None:
    needed_streams(soup, "a")
    soup.create_stream("b", SCHEMA, time="ts", clock="stream", retain="needed", rules=Rules(("k",)))
    soup.derive_stream("d", "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k EMIT FINAL")
    push(soup, "a", row(1, 1), Punctuation(k=1))
    derive_all(soup)
    assert soup.free() == 0
    push(soup, "b", row(1, 2))
    soup.derive()
    assert [(each["k"], each["n"]) for each in soup.invoker.answer_once("SELECT k, n FROM d")] == [(1, 1)]
