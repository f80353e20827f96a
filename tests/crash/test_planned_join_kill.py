"""SIGKILL in the steps of a kept join with a plan, and of its sub-join: each result exists once, and steps go on."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tureen.plan_hint import PlanHint
from tureen.pot.kept_joins import joins_to_keep
from tureen.pot.sweep import sweep
from tureen.testing.manual_engine import ManualEngine

SQL = "SELECT a.n AS x, b.n AS y, c.n AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m"
ROWS = 6
CRASH_POINTS = ["join.before_write", "join.after_write", "join.before_commit", "join.in_commit", "join.after_commit"]


def rows(first: int) -> list[dict[str, int]]:
    """Tuples of which each has partners in all streams."""
    return [{"n": number, "k": number % 3, "m": number % 2} for number in range(first, first + ROWS)]


def take_rows(engine: ManualEngine, streams: str, first: int) -> None:
    """Push the same tuples to streams, and move them into runs."""
    for name in streams:
        engine.append(name, rows(first))
        engine.take(name)


def keep(root: Path, streams: str) -> None:
    """Advance the join over new tuples of streams."""
    engine = ManualEngine(root)
    take_rows(engine, streams, ROWS)
    engine.keep_joins()


def expected(streams: str) -> list[tuple[int, ...]]:
    """The answer after new tuples of streams."""
    tuples = [rows(0) + (rows(ROWS) if name in streams else []) for name in "abc"]
    return sorted((a["n"], b["n"], c["n"]) for a, b, c in product(*tuples) if a["k"] == b["k"] and b["m"] == c["m"])


def progress(engine: ManualEngine) -> dict[int, tuple[int, ...]]:
    """Up to which tuples the sub-join and the join have results, by the number of their streams."""
    with engine.catalog.read() as tx:
        return {len(join.progress): tuple(join.progress) for join in joins_to_keep(tx)}


@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize("streams", ["ab", "c"])
def test_kill_in_a_step(tmp_path: Path, crash_dir: Path, streams: str, point: str) -> None:
    """New tuples of a and b kill the step of the sub-join, which comes first, and those of c that of the join."""
    engine = ManualEngine(tmp_path)
    for name in "abc":
        engine.create_stream(name, "n INT, k INT, m INT")
    handle = engine.register(SQL, materialize=True, hint=PlanHint("left-deep"))
    take_rows(engine, "abc", 0)
    engine.keep_joins()
    before = progress(engine)
    assert before.keys() == {2, 3}
    engine.close()
    (crash_dir / point).touch()
    run_until_killed(keep, tmp_path, streams)

    engine = ManualEngine(tmp_path)
    killed, other = (2, 3) if streams == "ab" else (3, 2)
    assert progress(engine)[other] == before[other]
    assert (progress(engine)[killed] > before[killed]) == (point == "join.after_commit")
    answer = expected(streams)

    def check() -> None:
        assert sorted(tuple(row.values()) for row in engine.invoke(handle)) == answer

    check()
    engine.keep_joins()
    check()
    about = engine.invoker.explain(handle)["kept_join"]
    assert (about["used"], about["joined_tuples"]) == (True, len(answer))
    assert about["owed_tuples"] == {"a": 0, "b": 0, "c": 0}
    sweep(engine.catalog, abandoned_after=-1, grace=-1)
    check()
    with engine.catalog.read() as tx:
        paths = {run.path for join in joins_to_keep(tx) for run in join.runs}
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / "joins").rglob("*.run")} == paths
    engine.close()
