"""The thread that derives streams: pushes of its process wake it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.pipeline.derived_rows import SCHEMA, answer, row
from tureen.pipeline import deriving
from tureen.testing.manual_engine import ManualEngine

DEADLINE = 60.0


@contextmanager
def deriving_thread(engine: ManualEngine) -> Iterator[None]:
    """Derive in a thread, as the engine does."""
    closing = threading.Event()
    thread = threading.Thread(target=engine.deriver.run, args=(closing,))
    thread.start()
    try:
        yield
    finally:
        closing.set()
        engine.deriver.wake()
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the thread does not end"


def wait_for_rows(engine: ManualEngine, count: int) -> None:
    deadline = time.monotonic() + DEADLINE
    while len(answer(engine, "SELECT v FROM derived")) < count:
        assert time.monotonic() < deadline, "the push was not derived"
        time.sleep(0.001)


def test_pushes_wake_the_thread(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deriving, "POLL_SECONDS", 10 * DEADLINE)
    engine.create_stream("s", SCHEMA, time="ts", clock="stream")
    engine.derive_stream("derived", "SELECT v, ts FROM s")
    with deriving_thread(engine):
        for count in range(1, 4):
            engine.append("s", [row(count)])
            wait_for_rows(engine, count)
