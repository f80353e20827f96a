"""SIGKILL at every commit point: what was acknowledged is there once, and every handle answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker

WORKLOAD = Path(__file__).with_name("workload.py")
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


def run(root: Path, crash_dir: Path) -> tuple[int, list[str]]:
    environment = {**os.environ, "TUREEN_CRASH_DIR": str(crash_dir)}
    done = subprocess.run(
        [sys.executable, str(WORKLOAD), str(root), str(PUSHES)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode, done.stdout.splitlines()


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
def test_killed_and_run_again(tmp_path: Path, crash_dir: Path, place: str) -> None:
    root = tmp_path / "pot"
    root.mkdir()
    (crash_dir / place).touch()
    code, before = run(root, crash_dir)
    assert code == -9, f"nothing passes {place}"
    if any(line.startswith("registered") for line in before):
        check(root, before, taken=False)
    code, after = run(root, crash_dir)
    assert code == 0
    check(root, before + after, taken=True)
    catalog = Catalog(root)
    sweep(catalog, abandoned_after=-1, grace=-1)
    check(root, before + after, taken=True)
    catalog.close()
