"""Random graphs of derived streams under kills: each stream equals the changes of its query, computed from scratch.

Each graph is killed several times in a row, at different points, while rows are pushed in random order and upkeep runs
between them. The few graphs of every run meet all points; with `make explore` there are many.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.crash.processes import run_until_killed
from tureen.functions.function_source import function_of
from tureen.functions.user_function import UserFunction, function_key
from tureen.pipeline import arrival, derivation, upkeep
from tureen.pot import log
from tureen.results.following import join_operator
from tureen.testing.appearing_rows import comparable_texts
from tureen.testing.derived_graphs import (
    BASES,
    COLUMNS,
    FUNCTIONS,
    Contents,
    DerivedNode,
    graph_contents,
    numbered_tuples,
    random_graph,
)
from tureen.testing.evaluate import define
from tureen.testing.manual_engine import ManualEngine

BASE = datetime(2026, 1, 1, tzinfo=UTC)
NODES = 5
ROWS = 3

POINTS = [
    "derive.before_push",
    "derive.after_push",
    "derive.before_note",
    "derive.after_note",
    "push.before_write",
    "push.before_sync",
    "push.after_sync",
    "push.in_publish",
    "push.after_publish",
    "sink.task",
    "run.before_write",
    "run.after_write",
    "sink.before_commit",
    "sink.in_commit",
    "sink.after_commit",
    "seal.before_write",
    "seal.before_commit",
    "seal.in_commit",
    "seal.after_commit",
    "trim.before_delete",
    "commit.before_word",
]
"""Where a derived stream is pushed to, noted, taken, merged and trimmed."""

GRAPHS = 4
SEEDS = range(GRAPHS * max(1, int(os.environ.get("TUREEN_EXPLORE", "0"))))


def points_of(seed: int) -> list[str]:
    """The points at which a graph is killed: those of the first graphs are all points together."""
    if seed < GRAPHS:
        return POINTS[seed::GRAPHS]
    return random.Random(seed).sample(POINTS, 6)


def pushes_of(seed: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """The pushes to the base streams; the times of each stream are in order."""
    draw = random.Random(seed)
    pushes = []
    for number in range(2 * len(points_of(seed)) + 3):
        key = draw.choice([0, 1, 2, None])
        rows = [
            {
                "k": draw.choice([key, draw.randrange(6)]),
                "v": draw.choice([None, *range(20)]),
                "ts": _time(number, each),
            }
            for each in range(draw.randint(1, ROWS))
        ]
        pushes.append((draw.choice(BASES), rows))
    return pushes


def _time(number: int, row: int) -> datetime:
    return BASE + timedelta(seconds=number, milliseconds=row)


def functions_of(seed: int) -> dict[str, UserFunction]:
    """The user functions that a graph may call, of one graph in four: to start their processes takes time."""
    if seed % GRAPHS != 1:
        return {}
    functions = {name: function_of(name, call, returns, "INT") for name, (call, returns) in FUNCTIONS.items()}
    for name, function in functions.items():
        define(function, FUNCTIONS[name][0])
    return {function_key(name): function for name, function in functions.items()}


def base_contents(seed: int) -> Contents:
    """All tuples of the base streams."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in BASES}
    for name, pushed in pushes_of(seed):
        rows[name] += pushed
    return {name: numbered_tuples(of_stream) for name, of_stream in rows.items()}


SIZES: list[tuple[ModuleType, str, int]] = [
    (derivation, "PUSH_ROWS", 2),
    (log, "SEGMENT_BYTES", 1),
    (arrival, "TAIL_ROWS", 4),
    (upkeep, "TAIL_ROWS", 4),
    (upkeep, "FAN", 2),
    (join_operator, "BLOCK_TUPLES", 3),
]
"""Short runs, blocks, segments and pushes, so that a short script has several of each."""


def work(root: Path, acknowledgements: Path, seed: int, names: list[str], crash: Path | None = None) -> None:
    """Push what was not acknowledged before, with upkeep between the pushes; the crash point is armed after one."""
    for module, size, value in SIZES:
        setattr(module, size, value)
    done = len(acknowledgements.read_text().split()) if acknowledgements.exists() else 0
    draw = random.Random(done)
    engine = ManualEngine(root)

    def seal() -> None:
        engine.seal(everything=draw.random() < 0.3)

    def take() -> None:
        for name in draw.sample(names, len(names)):
            engine.take(name)

    with acknowledgements.open("a") as file:
        for number, (name, rows) in enumerate(pushes_of(seed)[done:], done):
            if crash is not None and number > done:
                crash.touch()
            # The key makes a push that is repeated after a kill one push.
            engine.append(name, rows, key=str(number))
            print(number, file=file, flush=True)
            steps = [engine.derive, take, seal, engine.deriver.note_progress, engine.inbox.trim]
            for step in draw.sample(steps, len(steps)):
                step()
    engine.derive()
    engine.close()


def _rows(engine: ManualEngine, name: str) -> Counter[str]:
    return Counter(comparable_texts(engine.invoker.answer_once(f"SELECT k, v, ts FROM {name}").table.to_pylist()))


@pytest.mark.parametrize("seed", SEEDS)
def test_derived_streams_equal_their_queries_after_kills(
    tmp_path: Path, crash_dir: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, size, value in SIZES:
        # It is restored after the test; the last part of the work is done in this process.
        monkeypatch.setattr(module, size, value)
    base, functions = base_contents(seed), functions_of(seed)
    graph = random_graph(random.Random(seed), NODES, base, functions)
    root, acknowledgements = tmp_path / "pot", tmp_path / "acknowledgements"
    _create(root, graph, functions)
    names = [*BASES, *(node.name for node in graph)]
    for point in points_of(seed):
        run_until_killed(work, root, acknowledgements, seed, names, crash_dir / point)
    work(root, acknowledgements, seed, names)
    expected = graph_contents(graph, base, functions)
    engine = ManualEngine(root)
    for name in names:
        rows = Counter(comparable_texts([each.values for each in expected[name]]))
        assert _rows(engine, name) == rows, (name, [(node.name, node.sql) for node in graph])
    engine.close()


def _create(root: Path, graph: list[DerivedNode], functions: dict[str, UserFunction]) -> None:
    engine = ManualEngine(root)
    for name in BASES:
        engine.create_stream(name, COLUMNS, time="ts", clock="stream")
    if functions:
        for name, (call, returns) in FUNCTIONS.items():
            engine.create_function(name, call, returns, arguments="INT")
    for node in graph:
        engine.derive_stream(node.name, node.sql, time="ts", clock="stream")
    engine.close()
