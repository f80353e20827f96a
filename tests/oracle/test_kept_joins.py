"""Kept joins of every kind: the engine against the oracle after every step of a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.judges import same_rows
from tureen.errors import SqlError, Unsupported
from tureen.pipeline import arrival, compiling, join_keeping, upkeep
from tureen.testing import Handle, Oracle
from tureen.testing.join_strategies import START, STREAM_COLUMNS, STREAMS, stream_rows, time_of
from tureen.testing.kept_join_strategies import kept_joins
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

Step = tuple[str, Any]

LATE = st.sampled_from([0, 0, 0, -1, -4])
"""By how many seconds the tuples of a push are late."""


@st.composite
def scripts(draw: st.DrawFn) -> list[Step]:
    """Queries before, between and after the data, which are pending, owed, kept, merged and expired."""
    rows = st.tuples(st.sampled_from(STREAMS), stream_rows(8), LATE)
    push = st.tuples(st.sampled_from(["push", "append"]), rows)
    register = st.tuples(st.just("register"), st.tuples(kept_joins(), st.sampled_from([True, True, True, False])))
    upkeep_steps = ["compile", "pay", "seal", "seal all", "keep_joins", "keep_joins", "keep_joins_once", "expire"]
    other = st.one_of(
        st.tuples(st.just("take"), st.sampled_from(STREAMS)),
        st.tuples(st.just("unregister"), st.integers(0, 9)),
        st.tuples(st.sampled_from(upkeep_steps), st.none()),
    )
    first = [("push", (name, draw(stream_rows(8)), 0)) for name in STREAMS]
    before = draw(st.lists(register, max_size=2))
    queries = draw(st.lists(register, min_size=3, max_size=6))
    steps = draw(st.lists(st.one_of(push, push, register, other), min_size=2, max_size=8))
    return [*before, *first, *queries, ("keep_joins", None), *steps]


@dataclass
class KeptScriptRun:
    """A script that runs in the engine and in the oracle."""

    root: Path
    retain: str | None
    standing: list[tuple[str, str, Handle, bool]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))

    def __post_init__(self) -> None:
        self.now = to_micros(START)
        self.engine, self.oracle = ManualEngine(self.root, lambda: self.now), Oracle(lambda: self.now)
        for name in STREAMS:
            self.engine.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream", retain=self.retain)
            self.oracle.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream", retain=self.retain)

    def run(self, step: Step) -> None:
        """Run a step and compare all answers; after a registration the new one, because no other can have changed."""
        action, value = step
        asked = self.standing
        match action:
            case "push" | "append":
                self._push(action, *value)
            case "register":
                self._register(*value)
                asked = self.standing[-1:]
            case "take":
                self.engine.take(value)
            case "unregister":
                if value < len(self.standing):
                    _, handle, twin, _ = self.standing.pop(value)
                    self.engine.unregister(handle)
                    twin.unregister()
            case "seal all":
                self.engine.seal(everything=True)
            case _:
                getattr(self.engine, action)()
        for text, handle, twin, is_eager in asked:
            if action == "keep_joins" and is_eager:
                assert self.engine.invoker.explain(handle)["kept_join"]["used"], text
            expected = twin.invoke()
            # Twice, because what the first invocation has cached must be right.
            for _ in range(2):
                answer = list(self.engine.invoke(handle))
                assert same_rows(answer, expected, ordered=True), (text, answer, expected)

    def _push(self, action: str, name: str, rows: Sequence[Mapping[str, Any]], late: int) -> None:
        first, jitter = self.counts[name], STREAMS.index(name) * 100 + late * 7
        timed = [
            {**row, "ts": time_of(first + number, jitter) + timedelta(seconds=late)} for number, row in enumerate(rows)
        ]
        self.counts[name] += len(rows)
        (self.engine.push if action == "push" else self.engine.append)(name, timed)
        self.oracle.push(name, timed)

    def _register(self, text: str, materialize: bool) -> None:
        try:
            twin = self.oracle.register(text)
        except (Unsupported, SqlError) as error:
            pytest.fail(f"{text}: {error}")
        self.standing.append((text, self.engine.register(text, materialize=materialize), twin, materialize))


@example_settings(13, explored=25, shrink=False)
@given(scripts(), st.sampled_from([1 << 20, 3]), st.sampled_from([None, None, "12 seconds"]))
def test_kept_joins_equal_the_oracle_at_every_step(script: list[Step], step_tuples: int, retain: str | None) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "LONG_TAIL", 8)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(compiling, "SMALL_RUN", 1)
        patch.setattr(join_keeping, "STEP_TUPLES", step_tuples)
        run = KeptScriptRun(Path(folder), retain)
        try:
            for step in script:
                run.run(step)
        finally:
            run.engine.close()
