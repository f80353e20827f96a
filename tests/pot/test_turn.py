"""The turn is for fairness only: without it, concurrent commits are as correct."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.fast_paths import FastPath
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.turn import Turn

COMMIT = """
import sys
from pathlib import Path
from tureen.pot.catalog import Catalog, take_seq
with Catalog(Path(sys.argv[1])) as catalog:
    for _ in range(20):
        with catalog.write() as tx:
            take_seq(tx)
"""


def commit(catalog: Catalog) -> list[int]:
    """The seqs of ten commits."""
    seqs = []
    for _ in range(10):
        with catalog.write() as tx:
            seqs.append(take_seq(tx))
    return seqs


def test_without_the_turn_nobody_waits_for_it(tmp_path: Path) -> None:
    with without_fast_paths(FastPath.TURN):
        first, second = Turn(tmp_path / "turn"), Turn(tmp_path / "turn")
    with first.taken(), second.taken():
        assert not (tmp_path / "turn").exists()
    with pytest.raises(ZeroDivisionError), first.taken():
        _ = 1 // 0
    first.close()
    second.close()


@pytest.mark.parametrize("off", [(True, True), (False, True)], ids=["all without", "one with and one without"])
def test_concurrent_commits_without_the_turn(tmp_path: Path, off: tuple[bool, bool]) -> None:
    """Of four threads with two catalogs and of another process: no commit is lost, and none fails."""
    Catalog(tmp_path, create=True).close()
    catalogs = []
    for is_off in off:
        with ExitStack() as stack:
            if is_off:
                stack.enter_context(without_fast_paths(FastPath.TURN))
            catalogs.append(Catalog(tmp_path))
    reader = catalogs[0]
    with (
        without_fast_paths(FastPath.TURN),
        subprocess.Popen([sys.executable, "-c", COMMIT, str(tmp_path)]) as other,
        ThreadPoolExecutor(4) as pool,
    ):
        committed = [seq for seqs in pool.map(commit, catalogs * 2) for seq in seqs]
        assert other.wait() == 0
    assert len(set(committed)) == 40
    assert reader.seq() == 60
    token = reader.token()
    commit(catalogs[1])
    assert reader.token() != token
    for catalog in catalogs:
        catalog.write_digest()
        catalog.close()
    Catalog(tmp_path).close()
