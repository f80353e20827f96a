"""Whether positions are reached, with and without a transaction."""

from __future__ import annotations

import pytest

from tureen.errors import UnknownStream
from tureen.position import PushPosition, parse_position
from tureen.pot.pot_progress import PotProgress
from tureen.pot.streams import drop_stream, find_stream
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(engine: ManualEngine) -> ManualEngine:
    """A pot with two streams."""
    for name in "ab":
        engine.create_stream(name, "n INT")
    return engine


def position_of(engine: ManualEngine, name: str) -> PushPosition:
    position = parse_position(engine.append(name, [{"n": 1}]))
    assert isinstance(position, PushPosition)
    return position


def beyond(position: PushPosition) -> PushPosition:
    return PushPosition(position.seq, position.stream, position.end + 1, position.pushes)


def test_pushes_are_reached_before_and_after_they_are_taken(engine: ManualEngine) -> None:
    progress = PotProgress(engine.catalog)
    for _ in range(2):
        for name in "ab":
            position = position_of(engine, name)
            for _ in range(2):
                assert progress.is_reached(position)
                assert not progress.is_reached(beyond(position))
        engine.take_everything()
        assert progress.is_reached(position)
        assert not progress.is_reached(beyond(position))


def test_a_known_stream_needs_no_transaction(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = PotProgress(engine.catalog)
    assert progress.is_reached(position_of(engine, "a"))
    later, other = position_of(engine, "a"), position_of(engine, "b")
    monkeypatch.setattr(engine.catalog, "read", None)
    assert progress.is_reached(later)
    with pytest.raises(TypeError):
        progress.is_reached(other)


def test_the_position_of_a_dropped_stream_is_refused(engine: ManualEngine) -> None:
    progress = PotProgress(engine.catalog)
    position = position_of(engine, "a")
    assert progress.is_reached(position)
    with engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "a"))
    with pytest.raises(UnknownStream, match="was dropped"):
        progress.is_reached(position)
