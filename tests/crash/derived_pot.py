"""A pot with derived streams, and the work of a process that is killed while it derives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tureen.pipeline import derivation
from tureen.pot import log
from tureen.testing.manual_engine import ManualEngine

Push = Callable[[ManualEngine, int], None]
"""Makes the push of a number; must be a function of a module, because another process calls it too."""


@dataclass(frozen=True)
class DerivedPot:
    """The streams of a pot, and how often is pushed to them."""

    schemas: Mapping[str, str]
    """Of the streams that are pushed to, by name."""
    derived: Mapping[str, str]
    """The queries of derived streams, by name."""
    pushes: int
    armed_at: int
    """The number of the push before which the crash point is armed."""
    time: str | None = None

    def create(self, root: Path) -> None:
        """Create the pot."""
        engine = ManualEngine(root)
        for name, schema in self.schemas.items():
            engine.create_stream(name, schema, time=self.time)
        for name, sql in self.derived.items():
            engine.derive_stream(name, sql)
        engine.close()

    def work(self, root: Path, push: Push, first: int = 0, crash: Path | None = None) -> None:
        """Push from a number on, derive, commit and trim; with `crash`, create that file on the way."""
        with small_parts():
            engine = ManualEngine(root)
            for number in range(first, self.pushes):
                if crash is not None and number == self.armed_at:
                    crash.touch()
                push(engine, number)
                engine.derive()
                for name in (*self.schemas, *self.derived):
                    engine.take(name)
                if number % 2:
                    engine.deriver.note_progress()
                engine.inbox.trim()
            engine.derive()
            engine.close()

    @contextmanager
    def after_kill(
        self, root: Path, push: Push, crash: Path, count_done: Callable[[], int] = lambda: 0
    ) -> Iterator[ManualEngine]:
        """The pot after a process was killed at a crash point, and another has pushed what was not done."""
        with small_parts():
            self.create(root)
            run_until_killed(self.work, root, push, 0, crash)
            self.work(root, push, count_done())
            engine = ManualEngine(root)
            yield engine
            engine.close()


@contextmanager
def small_parts() -> Iterator[None]:
    """Derive in small pushes, each in a segment of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivation, "PUSH_ROWS", 2)
        patch.setattr(log, "SEGMENT_BYTES", 1)
        yield
