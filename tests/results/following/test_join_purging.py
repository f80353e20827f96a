"""Joins over random punctuated streams, compared with the plain twin.

The output is that of the join without punctuations, no purged tuple would be in a later result, and no row comes after
a punctuation that it matches.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.rules import Rules
from tureen.joining.continuous_join import JoinSetting
from tureen.pipeline import arrival, upkeep
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation, Range
from tureen.results.answer import Change
from tureen.results.following import join_operator, join_purging
from tureen.results.following.followed_joins import JoinFollower
from tureen.results.joins import stem_input
from tureen.soup.change_batches import QueryChanges
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.punctuated_joins import JoinTwin, TwinInput
from tureen.testing.punctuations import PunctuatedStream, matches

BASE = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "n INT, k INT, m INT, s STRING, ts TIMESTAMP"
SECOND = 1_000_000
RULES = {"a": Rules(), "b": Rules(), "c": Rules((), 2 * SECOND), "u": Rules(("k",), 0), "v": Rules(("k", "s"))}
TABLE = [{"n": n, "k": n % 3, "m": n, "s": "x"} for n in range(4)]
SHAPES = [
    ("ab", ["0.k=1.k"]),
    ("cu", ["0.k=1.k"]),
    ("ac", ["0.k=1.k"]),
    ("vb", ["0.k=1.k", "0.s=1.s"]),
    ("aa", ["0.k=1.k"]),
    ("bb", ["0.k=1.m"]),
    ("ad", ["0.k=1.k"]),
    ("abc", ["0.k=1.k", "1.k=2.k"]),
    ("abu", ["0.k=1.k", "1.m=2.k"]),
    ("abd", ["0.k=1.k", "1.m=2.m"]),
    ("abcu", ["0.k=1.k", "1.m=2.m", "2.k=3.k"]),
]
HINTS = [NO_HINT, PlanHint("bushy", True), PlanHint("left-deep", True), PlanHint("bushy", False)]
KEYS = range(4)
STEPS = {"push": 8, "take": 2, "seal": 1, "read": 6, "explain": 4, "part": 3, "follow": 3, "restart": 1, "reopen": 0.5}


def column_of(text: str) -> tuple[int, str]:
    number, column = text.split(".")
    return int(number), column


def twin_of(
    shape: tuple[str, list[str]], streams: dict[str, PunctuatedStream], windows: Sequence[int | None]
) -> JoinTwin:
    inputs = [
        TwinInput(TABLE)
        if name == "d"
        else TwinInput(streams[name], None if window is None else timedelta(seconds=window))
        for name, window in zip(shape[0], windows, strict=True)
    ]
    pairs = [tuple(map(column_of, text.split("="))) for text in shape[1]]
    return JoinTwin(inputs, [(left, right) for left, right in pairs])


def sql_of(shape: tuple[str, list[str]], windows: Sequence[int | None]) -> str:
    names = {"d": "dim"}
    outputs, sources = [], []
    for number, (name, window) in enumerate(zip(shape[0], windows, strict=True)):
        outputs += [f"t{number}.{column} AS {column}{number}" for column in ("n", "k", "m", "s")]
        bounds = "" if window is None or name == "d" else f" [RANGE {window} SECONDS]"
        sources.append(f"{names.get(name, name)} t{number}{bounds}")
    conditions = [
        " = ".join(f"t{number}.{column}" for number, column in map(column_of, text.split("="))) for text in shape[1]
    ]
    return f"SELECT {', '.join(outputs)} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"


@dataclass
class _Reader:
    """A follower that has read everything from the beginning."""

    handle: str
    twin: JoinTwin
    follower: Any
    position: str = BEGINNING
    items: list[Change] = field(default_factory=list)
    dead: dict[int, dict[int, dict[int, int]]] = field(default_factory=dict)
    """By input and tuple, the ends of the streams when it was first seen dead."""

    def read(self, engine: ManualEngine, count: int | None = None) -> None:
        new = engine.invoker.new_rows(self.handle, Position.parse(self.position), self.follower, punctuations=True)
        batch = list(QueryChanges(self.handle, new))
        self.items += batch[:count]
        cut = count is not None and 0 < count < len(batch)
        self.position = batch[count - 1].position if cut and count else self.position if count == 0 else new.position()
        if isinstance(self.follower, JoinFollower):
            self.note_dead(is_complete=False)

    def explain(self) -> None:
        """Let the operator apply what it has read, and compare all of it with what the rule says."""
        if isinstance(self.follower, JoinFollower):
            self.follower.clause.operator.state()
            self.note_dead(is_complete=True)

    def note_dead(self, *, is_complete: bool) -> None:
        """Remember when tuples left the state, and compare with what the rule says."""
        operator = self.follower.clause.operator
        if operator.purging is None:
            return
        order = self.follower.clause.query.shape.inputs
        for index, state in enumerate(operator.purging.inputs):
            number = order.index(index)
            if self.twin.inputs[number].is_table:
                continue
            ids = np.arange(len(self.twin.inputs[number].rows))
            dead = set(np.flatnonzero(state.dead.contains(ids)).tolist())
            allowed = self.twin.dead_rows(number)
            assert dead <= allowed, "a tuple left the state that the rule keeps"
            if is_complete and len(order) == 2 and not state.unscanned:
                assert dead == allowed, "a tuple is in the state that the rule purges"
            for row in dead:
                self.dead.setdefault(number, {}).setdefault(row, dict(operator.ends))

    def check(self, stream_ids: dict[str, int], shape: str) -> None:
        rows = [item.row for item in self.items if item.row is not None]
        assert Counter(map(str, rows)) == Counter(str(self._row(numbers)) for numbers in self.twin.joined())
        promised: list[Punctuation] = []
        for item in self.items:
            if item.punctuation is not None:
                promised.append(item.punctuation)
            else:
                assert not any(matches(each, item.row) for each in promised), (item.row, promised)
        for numbers in self.twin.joined(in_windows=False):
            for number, row in enumerate(numbers):
                ends = self.dead.get(number, {}).get(row)
                if ends is not None:
                    arrived = [
                        name == "d" or numbers[other] < ends[stream_ids[name]] for other, name in enumerate(shape)
                    ]
                    assert all(arrived), "a purged tuple is in a later result"
        if len(self.twin.classes) == 1:
            self.check_complete(promised)

    def check_complete(self, promised: Sequence[Punctuation]) -> None:
        """All values that all inputs have closed were propagated."""
        for key in KEYS:
            known = [
                {name: key for each, name in self.twin.classes[0] if each == n} for n in range(len(self.twin.inputs))
            ]
            if all(self.twin.is_closed(number, each) for number, each in enumerate(known)):
                row = {f"{name}{number}": key for number, each in enumerate(known) for name in each}
                assert any(set(each.where) <= row.keys() and matches(each, row) for each in promised), (key, promised)

    def _row(self, numbers: Sequence[int]) -> dict[str, Any]:
        return {
            f"{column}{number}": each.rows[row][column]
            for number, (each, row) in enumerate(zip(self.twin.inputs, numbers, strict=True))
            for column in ("n", "k", "m", "s")
        }


def random_items(draw: random.Random, first: int, *, ranges: bool) -> list[Any]:
    items: list[Any] = []
    for number in range(first, first + draw.randint(1, 3)):
        late = draw.choice([0, 0, 0, 1, 4])
        key = None if draw.random() < 0.1 else draw.choice(KEYS)
        row = {"n": number, "k": key, "m": draw.choice(KEYS), "s": draw.choice("xy")}
        items.append({**row, "ts": BASE + timedelta(seconds=number - late)})
        while draw.random() < 0.4:
            items.append(random_punctuation(draw, number, ranges=ranges))
    return items


def random_punctuation(draw: random.Random, second: int, *, ranges: bool) -> Punctuation:
    column = draw.choice("kkkm")
    low = draw.choice(KEYS)
    patterns: list[dict[str, Any]] = [
        {column: low},
        {column: low},
        {column: [low, draw.choice(KEYS)]},
        {"k": low, "s": "x"},
        {column: Range(low=low, high=low + draw.randint(0, 1))},
        {column: Range(high=0)},
        {"s": draw.choice("xy"), "k": Range(low=3)},
        {"ts": Range(high=BASE + timedelta(seconds=second - 8))},
    ]
    return Punctuation.of(draw.choice(patterns if ranges else patterns[:4]))


class _Script:
    """Random pushes with punctuations, commits, merges, readers that come and go, and restarts."""

    def __init__(self, folder: Path, draw: random.Random, setting: JoinSetting) -> None:
        self.draw, self.folder, self.setting = draw, folder, setting
        self.streams: dict[str, PunctuatedStream] = {}
        self.engine = ManualEngine(folder)
        for name, rules in RULES.items():
            self.engine.create_stream(name, COLUMNS, time="ts", clock="stream", rules=rules)
            lateness = None if rules.lateness is None else timedelta(microseconds=rules.lateness)
            self.streams[name] = PunctuatedStream(rules.unique, "ts", lateness)
        Dimensions(self.engine.catalog).create("dim", "n INT, k INT, m INT, s STRING", TABLE)
        self.engine.invoker.followers.joins.setting = setting
        self.pushed = 0
        # Without ranges, tuples are not compared again, and must be found by the values that are closed.
        self.ranges = draw.random() < 0.5
        shapes = draw.sample(SHAPES, 3)
        self.readers: list[tuple[_Reader, str]] = []
        for shape in [*shapes, shapes[0]]:
            windows = [draw.choice([None, None, 3, 8]) for _ in shape[0]]
            hint = draw.choice(HINTS)
            handle = self.engine.register(sql_of(shape, windows), materialize=False, hint=hint)
            self.readers.append((_Reader(handle, twin_of(shape, self.streams, windows), None), shape[0]))
        self.names = sorted({name for shape in shapes for name in shape[0]} - {"d"})

    def run(self, steps: int, weights: dict[str, float]) -> None:
        for _ in range(steps):
            self.step(self.draw.choices(list(weights), list(weights.values()))[0])
        stream_ids = {name: number for number, name in enumerate(RULES, 1)}
        for reader, shape in self.readers:
            reader.read(self.engine)
            reader.check(stream_ids, shape)

    def step(self, kind: str) -> None:
        draw, engine = self.draw, self.engine
        reader, _ = draw.choice(self.readers)
        name = draw.choice(self.names)
        if kind == "push":
            items = random_items(draw, self.pushed, ranges=self.ranges)
            self.pushed += 3
            self.streams[name].push(items)
            engine.append(name, items)
        elif kind == "take":
            engine.take(name)
        elif kind == "seal":
            engine.seal()
        elif kind == "read":
            reader.read(engine)
        elif kind == "explain":
            reader.read(engine)
            reader.explain()
        elif kind == "part":
            reader.read(engine, draw.randint(0, 3))
        elif kind == "follow":
            self.follow(reader)
        elif kind == "restart" and isinstance(reader.follower, JoinFollower):
            operator = reader.follower.clause.operator
            operator.restart()
        elif kind == "reopen":
            self.reopen()

    def follow(self, reader: _Reader) -> None:
        if reader.follower is None:
            reader.follower = self.engine.invoker.follow(reader.handle)
        else:
            self.engine.invoker.followers.remove(reader.follower)
            reader.follower = None

    def reopen(self) -> None:
        for reader, _ in self.readers:
            if reader.follower is not None:
                self.follow(reader)
        self.engine.close()
        self.engine = ManualEngine(self.folder)
        self.engine.invoker.followers.joins.setting = self.setting


def run_script(
    seed: int,
    setting: JoinSetting = JoinSetting.BOTH,
    steps: int = 30,
    weights: dict[str, float] = STEPS,
    *,
    is_followed: bool = False,
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(join_operator, "KEPT_BLOCKS", 3)
        patch.setattr(join_operator, "BLOCK_TUPLES", 5)
        draw = random.Random(seed)
        patch.setattr(join_purging, "LAZY_SHARE", draw.choice([1, 2, 1_000]))
        patch.setattr(stem_input, "GROUPED_ROWS", draw.choice([0, 4]))
        script = _Script(Path(folder), draw, setting)
        if is_followed:
            for reader, _ in script.readers:
                script.follow(reader)
        script.run(steps, weights)
        script.engine.close()


@example_settings(6)
@given(st.integers(0, 1 << 32))
def test_like_the_twin(seed: int) -> None:
    run_script(seed)


@example_settings(6)
@given(st.integers(0, 1 << 32))
def test_state_like_the_twin(seed: int) -> None:
    """Readers that follow from the beginning, of joins of two streams with more keys: most tuples are purged later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "KEYS", range(10))
        patch.setattr(sys.modules[__name__], "SHAPES", [shape for shape in SHAPES if len(shape[0]) == 2])
        run_script(seed, steps=24, weights={"push": 8, "take": 1, "read": 3, "explain": 4}, is_followed=True)


@pytest.mark.parametrize("setting", [JoinSetting.WINDOWS, JoinSetting.PUNCTUATIONS])
def test_settings_change_no_output(setting: JoinSetting) -> None:
    run_script(7, setting)


def test_purging_a_join_of_three_inputs_ends(tmp_path: Path) -> None:
    """Two tuples that are joined die together, before any other: each is found next to the other once."""
    engine = ManualEngine(tmp_path)
    for name in ("a", "b"):
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    Dimensions(engine.catalog).create("dim", "n INT, k INT, m INT, s STRING", TABLE)
    shape = "abd", ["0.k=1.k", "1.k=2.k"]
    handle = engine.register(sql_of(shape, [None] * 3), materialize=False)
    follower = engine.invoker.follow(handle)
    assert isinstance(follower, JoinFollower)
    operator = follower.clause.operator
    row = {"n": 1, "k": 1, "m": 1, "s": "x", "ts": BASE}
    for name in ("a", "b"):
        engine.append(name, [row])
    operator.advance()
    engine.append("a", [Punctuation(k=2)])
    operator.advance()
    for name in ("a", "b"):
        engine.append(name, [Punctuation(k=1)])
    operator.advance()
    state = operator.state()
    assert [(state[name]["tuples"], state[name]["purged"]) for name in ("a", "b")] == [(0, 1), (0, 1)]
    engine.close()
