"""SIGKILL at every commit point: acknowledged rows are there exactly once, and every handle answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.crash import workload
from tests.crash.processes import run_until_killed
from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker

PUSHES = 7

CRASH_POINTS = [
    "push.before_write",
    "push.before_sync",
    "push.after_sync",
    "sink.task",
    "run.before_write",
    "run.after_write",
    "sink.before_commit",
    "sink.in_commit",
    "sink.after_commit",
    "register.before_commit",
    "register.in_commit",
    "register.after_commit",
    "seal.before_write",
    "seal.before_commit",
    "seal.in_commit",
    "seal.after_commit",
    "debt.before_write",
    "debt.after_write",
    "debt.before_commit",
    "debt.after_commit",
    "join.before_write",
    "join.after_write",
    "join.before_commit",
    "join.in_commit",
    "join.after_commit",
    "keys.before_commit",
    "keys.in_commit",
    "keys.after_commit",
    "key_file.before_write",
    "key_file.after_write",
    "key_file.before_commit",
    "key_file.in_commit",
    "key_file.after_commit",
    "trim.before_delete",
]


def check(root: Path, lines: list[str], *, taken: bool) -> None:
    """Compare the answers with the acknowledged rows."""
    catalog = Catalog(root)
    invoker = Invoker(catalog)
    pushed = {int(line.split()[1]) for line in lines if line.startswith("pushed")}
    for line in lines:
        if not line.startswith("registered"):
            continue
        _, handle, excluded = line.split()
        counts = Counter(row["id"] for row in invoker.invoke(handle))
        assert set(counts.values()) <= {1}, f"duplicate rows: {counts}"
        if taken:
            expected = {number * 5 + row for number in pushed for row in range(5) if row != int(excluded)}
            assert set(counts) == expected
    catalog.close()


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    for module, name, value in workload.LIMITS:
        monkeypatch.setattr(module, name, value)
    root = tmp_path / "pot"
    root.mkdir()
    (crash_dir / point).touch()
    acknowledgements = tmp_path / "acknowledgements"
    run_until_killed(workload.work_with_limits, root, PUSHES, acknowledgements)
    before = acknowledgements.read_text().splitlines()
    if any(line.startswith("registered") for line in before):
        check(root, before, taken=False)
    after = list(workload.work(root, PUSHES))
    check(root, before + after, taken=True)
    catalog = Catalog(root)
    sweep(catalog, abandoned_after=-1, grace=-1)
    check(root, before + after, taken=True)
    catalog.close()
