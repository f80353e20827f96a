"""Followed joins in random scripts: each follower reads from the shared operator what it would compute alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.results.join_follower import COLUMNS, ComparedFollower, joined_tuple
from tureen.joining import continuous_join
from tureen.pipeline import arrival, upkeep
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.position import BEGINNING
from tureen.results.following import join_operator
from tureen.results.invoke import Invoker
from tureen.routing_policies import ROUTING_POLICIES
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine

STREAMS = ("a", "b", "c")


CONDITIONS = ("{0}.x > 1", "{0}.x < 3", "{0}.x % 2 = 0", "{0}.s IN ('0', '1')", "{0}.k IS NOT NULL AND {0}.x <> 2")


def _random_query(draw: random.Random) -> str:
    """A join of two to four streams and tables by equalities, with conditions and windows."""
    relations = draw.choice(["ab", "ab", "ba", "abd", "bda", "aab", "aa", "abc", "cab", "abcd", "abab"])
    names = [f"t{number}" for number in range(len(relations))]
    sources, conditions = [], []
    for number, relation in enumerate(relations):
        window = draw.choice(["", "", " [RANGE 3 SECONDS]", " [RANGE 12 SECONDS]"])
        sources.append(f"dim {names[number]}" if relation == "d" else f"{relation} {names[number]}{window}")
        if number:
            other = names[draw.randrange(number)]
            for column in draw.choice([("k",), ("k",), ("s", "k")]):
                conditions.append(f"{other}.{column} = {names[number]}.{column}")
        if draw.random() < 0.3:
            conditions.append(draw.choice(CONDITIONS).format(names[number]))
    if draw.random() < 0.2:
        conditions.append(f"{names[0]}.x <= {names[1]}.x")
    if draw.random() < 0.2:
        conditions.append(f"({names[0]}.x + {names[-1]}.x) % 3 < 2")
    outputs = ", ".join(f"{name}.x AS x{name}" for name in names)
    return f"SELECT {outputs} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"


@contextmanager
def small_engine() -> Iterator[ManualEngine]:
    """An engine with short runs and blocks, so that a short script has several of each kind."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(join_operator, "KEPT_BLOCKS", 3)
        patch.setattr(join_operator, "BLOCK_TUPLES", 5)
        patch.setattr(continuous_join, "ROUTED_TUPLES", 2)
        engine = ManualEngine(Path(folder))
        for name in STREAMS:
            engine.create_stream(name, COLUMNS, time="ts", clock="stream")
        Dimensions(engine.catalog).create("dim", "k INT, x INT, s STRING", _TABLE[0])
        yield engine
        engine.close()


_TABLE = [
    [{"k": 0, "x": 1, "s": "0"}, {"k": 1, "x": 2, "s": "1"}, {"k": 1, "x": 3, "s": None}],
    [{"k": 2, "x": 4, "s": "1"}, {"k": 1, "x": 0, "s": "0"}],
]


STEPS = {"push": 8, "sink": 1, "take": 2, "seal": 1, "read": 8, "part": 2, "follow": 2, "leave": 1, "table": 1}


class _Script:
    """Random pushes, commits, merges and followers."""

    def __init__(self, engine: ManualEngine, draw: random.Random, routing: str, hints: Sequence[PlanHint]) -> None:
        self.engine, self.draw, self.routing = engine, draw, routing
        engine.invoker.followers.joins.routing = routing
        texts = [_random_query(draw) for _ in range(5)]
        # Queries that differ in a condition on their first input share the join.
        texts += [f"{text} AND t0.x > {number % 3}" for number, text in enumerate(texts)]
        self.handles = [
            engine.register(text, materialize=False, hint=hints[number % 5 % len(hints)])
            for number, text in enumerate(texts)
        ]
        self.followers = [ComparedFollower(engine, handle) for handle in self.handles[:8]]
        self.pushed = Counter[str]()

    def step(self) -> None:
        """One random step."""
        engine, draw = self.engine, self.draw
        match draw.choices(list(STEPS), list(STEPS.values()))[0]:
            case ("push" | "sink") as kind:
                name = draw.choice(STREAMS)
                rows = [joined_tuple(self.pushed[name] + offset, 7) for offset in range(draw.randint(1, 3))]
                (engine.append if kind == "push" else engine.push)(name, rows)
                self.pushed[name] += len(rows)
            case "take":
                engine.take(draw.choice(STREAMS), draw.randint(1, 3))
            case "seal":
                engine.seal(everything=draw.random() < 0.5)
            case "follow":
                since = draw.choice([None, None, BEGINNING])
                self.followers.append(ComparedFollower(engine, draw.choice(self.handles), since))
            case "leave":
                self.followers.pop(draw.randrange(len(self.followers))).leave()
            case "part":
                draw.choice(self.followers).read_partly(draw.randrange(3))
            case "table":
                self.replace_table()
            case _:
                for follower in draw.sample(self.followers, 3):
                    follower.read()

    def replace_table(self) -> None:
        """Rows are joined with the content at the time of reading."""
        for follower in self.followers[::2]:
            follower.read()
        Dimensions(self.engine.catalog).replace("dim", self.draw.choice(_TABLE))
        for follower in self.followers:
            follower.read()
            follower.start, follower.rows = str(follower.position), Counter()

    def restart(self) -> None:
        """As another process would continue."""
        self.engine.invoker = Invoker(self.engine.catalog, routing=self.routing)
        for follower in self.followers:
            follower.followed = self.engine.invoker.follow(follower.handle)


HINTS = [PlanHint("left-deep", True), PlanHint("bushy", True), PlanHint("bushy", False), PlanHint("left-deep")]


@pytest.mark.parametrize(
    ("seed", "routing", "hints"),
    [*((seed, routing, [NO_HINT]) for seed, routing in enumerate(ROUTING_POLICIES)), (3, "tickets", HINTS)],
)
def test_followers_read_the_same_together_and_alone(seed: int, routing: str, hints: list[PlanHint]) -> None:
    with small_engine() as engine:
        script = _Script(engine, random.Random(seed), routing, hints)
        for number in range(140):
            script.step()
            if number == 80:
                script.restart()
        assert any(operator.produced for operator in engine.invoker.followers.joins.operators())
        for follower in script.followers:
            follower.check_all()
            assert follower.read() == 0
            follower.leave()
        assert len(engine.invoker.followers.joins) == 0
