"""SIGKILL at every commit point: what was acknowledged is there once, and every handle answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crash import workload
from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker

PUSHES = 7

PLACES = [
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
    "trim.before_delete",
]


def run_until_killed(root: Path, crash_dir: Path) -> list[str]:
    """The workload in a process of its own, which dies on the way; what it acknowledged before."""
    environment = {**os.environ, "TUREEN_CRASH_DIR": str(crash_dir)}
    done = subprocess.run(
        [sys.executable, workload.__file__, str(root), str(PUSHES)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, f"it did not die: {done.stderr}"
    return done.stdout.splitlines()


def check(root: Path, lines: list[str], *, taken: bool) -> None:
    """Compare the answers with what was acknowledged."""
    catalog = Catalog(root)
    invoker = Invoker(catalog)
    pushed = {int(line.split()[1]) for line in lines if line.startswith("pushed")}
    for line in lines:
        if not line.startswith("registered"):
            continue
        _, handle, unwanted = line.split()
        found = Counter(row["id"] for row in invoker.invoke(handle))
        assert set(found.values()) <= {1}, f"rows that are there twice: {found}"
        if taken:
            wanted = {number * 5 + place for number in pushed for place in range(5) if place != int(unwanted)}
            assert set(found) == wanted
    catalog.close()


@pytest.mark.parametrize("place", PLACES)
def test_killed_and_run_again(tmp_path: Path, crash_dir: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    for module, name, value in workload.LIMITS:
        monkeypatch.setattr(module, name, value)
    root = tmp_path / "pot"
    root.mkdir()
    (crash_dir / place).touch()
    before = run_until_killed(root, crash_dir)
    if any(line.startswith("registered") for line in before):
        check(root, before, taken=False)
    after = list(workload.work(root, PUSHES))
    check(root, before + after, taken=True)
    catalog = Catalog(root)
    sweep(catalog, abandoned_after=-1, grace=-1)
    check(root, before + after, taken=True)
    catalog.close()
