"""Pots where nothing can be written: on a read-only mount, and without the permission."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tureen
from tureen.errors import PotError
from tureen.pot.catalog import Catalog
from tureen.testing.hand_turned import HandTurned

READ = """
import sys, tureen
with tureen.open(sys.argv[1]) as soup:
    print(soup.query("big").invoke().table.to_pylist(), soup.table("t").to_pylist(), soup.status()["queries"])
    try:
        soup.push("s", [{"n": 9}])
    except tureen.TureenError as error:
        print(type(error).__name__)
"""
READ_GIVES = "[{'n': 2}] [{'a': 1}] 1\nPotError\n"


@pytest.fixture
def closed_pot(tmp_path: Path) -> Path:
    """A pot with a stream, a table and a query, closed well."""
    root = tmp_path / "source" / "pot"
    hand = HandTurned(root)
    hand.create_stream("s", "n INT")
    hand.push("s", [{"n": 1}, {"n": 2}])
    hand.register("SELECT n FROM s WHERE n > 1", name="big")
    hand.close()
    with tureen.open(root) as soup:
        soup.create_table("t", "a INT", [{"a": 1}])
    return root


@contextmanager
def opened(root: Path) -> Iterator[Catalog]:
    """A catalog for a while."""
    catalog = Catalog(root)
    try:
        yield catalog
    finally:
        catalog.close()


@contextmanager
def read_only_mount(source: Path) -> Iterator[Path]:
    """The same directory on a mount that cannot be written; the test is skipped where none can be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = source.parent / "mounted"
    place.mkdir()
    bound = subprocess.run(["mount", "--bind", str(source), str(place)], capture_output=True, check=False)
    if bound.returncode != 0:
        pytest.skip(f"a bind mount cannot be made here: {bound.stderr.decode().strip()}")
    try:
        again = ["mount", "-o", "remount,ro,bind", str(place)]
        if subprocess.run(again, capture_output=True, check=False).returncode != 0:
            pytest.skip("a mount cannot be made read-only here")
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_closed_pot_is_read_on_a_read_only_mount(closed_pot: Path) -> None:
    with read_only_mount(closed_pot.parent) as mounted:
        done = subprocess.run(
            [sys.executable, "-c", READ, str(mounted / "pot")], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.returncode) == (READ_GIVES, 0), done.stderr


def test_a_closed_pot_is_read_without_the_permission_to_write(closed_pot: Path) -> None:
    for directory in (closed_pot, *(path for path in closed_pot.rglob("*") if path.is_dir())):
        directory.chmod(0o555)
    # Root may write everywhere, unless it has no capabilities.
    plainly = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if plainly and (shutil.which("setpriv") is None or subprocess.run([*plainly, "true"], check=False).returncode != 0):
        pytest.skip("root cannot give up its capabilities here")
    done = subprocess.run(
        [*plainly, sys.executable, "-c", READ, str(closed_pot)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == (READ_GIVES, 0), done.stderr


def test_a_pot_that_was_not_closed(closed_pot: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    holder = Catalog(closed_pot)
    with holder.write() as tx:
        tx.exec_driver_sql("UPDATE counter SET seq = seq + 1")
    # What a process that was killed leaves behind.
    shutil.copytree(closed_pot, killed / "pot")
    shutil.copytree(closed_pot, killed / "less", ignore=shutil.ignore_patterns("*-shm"))
    with read_only_mount(killed) as mounted:
        with opened(mounted / "pot") as found:
            assert found.seq() == holder.seq()
        with pytest.raises(PotError) as refused:
            Catalog(mounted / "less")
        assert "not closed" in str(refused.value.hint)
    holder.close()


def test_somebody_who_may_write_begins_to(closed_pot: Path) -> None:
    with read_only_mount(closed_pot.parent) as mounted, tureen.open(mounted / "pot", mode="read") as reader:
        assert len(reader.query("big").invoke()) == 1
        writer = HandTurned(closed_pot)
        writer.push("s", [{"n": 3}])
        assert reader.query("big").invoke().table.to_pylist() == [{"n": 2}, {"n": 3}]
        writer.close()
