"""Pots that cannot be written: on a read-only mount, and without write permission."""

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
from tureen.testing.manual_engine import ManualEngine

READ = """
import sys, tureen
with tureen.open(sys.argv[1]) as soup:
    print(soup.query("big").invoke().table.to_pylist(), soup.table("t").to_pylist(), soup.status()["queries"])
    try:
        soup.push("s", [{"n": 9}])
    except tureen.TureenError as error:
        print(type(error).__name__)
"""
READ_OUTPUT = "[{'n': 2}] [{'a': 1}] 1\nPotError\n"


@pytest.fixture
def closed_pot(tmp_path: Path) -> Path:
    """A properly closed pot with a stream, a table and a query."""
    root = tmp_path / "source" / "pot"
    engine = ManualEngine(root)
    engine.create_stream("s", "n INT")
    engine.push("s", [{"n": 1}, {"n": 2}])
    engine.register("SELECT n FROM s WHERE n > 1", name="big")
    engine.close()
    with tureen.open(root) as soup:
        soup.create_table("t", "a INT", [{"a": 1}])
    return root


@contextmanager
def opened(root: Path) -> Iterator[Catalog]:
    """An open catalog."""
    catalog = Catalog(root)
    try:
        yield catalog
    finally:
        catalog.close()


@contextmanager
def read_only_mount(source: Path) -> Iterator[Path]:
    """A read-only mount of a directory; skips the test if mounting is not possible."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    mount_point = source.parent / "mounted"
    mount_point.mkdir()
    bound = subprocess.run(["mount", "--bind", str(source), str(mount_point)], capture_output=True, check=False)
    if bound.returncode != 0:
        pytest.skip(f"a bind mount cannot be made here: {bound.stderr.decode().strip()}")
    try:
        again = ["mount", "-o", "remount,ro,bind", str(mount_point)]
        if subprocess.run(again, capture_output=True, check=False).returncode != 0:
            pytest.skip("a mount cannot be made read-only here")
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


def test_reading_a_closed_pot_on_a_read_only_mount(closed_pot: Path) -> None:
    with read_only_mount(closed_pot.parent) as mounted:
        done = subprocess.run(
            [sys.executable, "-c", READ, str(mounted / "pot")], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.returncode) == (READ_OUTPUT, 0), done.stderr


def test_reading_a_closed_pot_without_write_permission(closed_pot: Path) -> None:
    for directory in (closed_pot, *(path for path in closed_pot.rglob("*") if path.is_dir())):
        directory.chmod(0o555)
    # Root may write everywhere, unless it has no capabilities.
    without_capabilities = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if without_capabilities and (
        shutil.which("setpriv") is None or subprocess.run([*without_capabilities, "true"], check=False).returncode != 0
    ):
        pytest.skip("root cannot give up its capabilities here")
    done = subprocess.run(
        [*without_capabilities, sys.executable, "-c", READ, str(closed_pot)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == (READ_OUTPUT, 0), done.stderr


def test_reading_a_pot_that_was_not_closed(closed_pot: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    holder = Catalog(closed_pot)
    with holder.write() as tx:
        tx.execute_text("UPDATE counter SET seq = seq + 1")
    # The files that a killed process leaves.
    shutil.copytree(closed_pot, killed / "pot")
    shutil.copytree(closed_pot, killed / "less", ignore=shutil.ignore_patterns("*-shm"))
    with read_only_mount(killed) as mounted:
        with opened(mounted / "pot") as catalog:
            assert catalog.seq() == holder.seq()
        with pytest.raises(PotError) as caught:
            Catalog(mounted / "less")
        assert "not closed" in str(caught.value.hint)
    holder.close()


def test_a_reader_sees_commits_of_a_later_writer(closed_pot: Path) -> None:
    with read_only_mount(closed_pot.parent) as mounted, tureen.open(mounted / "pot", mode="read") as reader:
        assert len(reader.query("big").invoke()) == 1
        writer = ManualEngine(closed_pot)
        writer.push("s", [{"n": 3}])
        assert reader.query("big").invoke().table.to_pylist() == [{"n": 2}, {"n": 3}]
        writer.close()
