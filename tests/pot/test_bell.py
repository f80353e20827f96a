"""The word in shared memory that changes on every commit, in this process and in others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.errors import StorageFailed
from tureen.fast_paths import FastPath
from tureen.pot import commit_token
from tureen.pot.bell import Bell
from tureen.pot.catalog import Catalog, take_seq

RING = """
import sys
from pathlib import Path
from tureen.errors import StorageFailed
from tureen.pot.bell import Bell
with Bell(Path(sys.argv[1])).ringing():
    pass
"""


def ring(bell: Bell) -> None:
    with bell.ringing():
        pass


def test_every_process_sees_a_change(tmp_path: Path) -> None:
    first, second = Bell(tmp_path / "bell"), Bell(tmp_path / "bell")
    marks = {first.begun()}
    for bell in (first, second, first):
        ring(bell)
        assert first.begun() == first.visible() == second.begun() == second.visible()
        marks.add(first.begun())
    subprocess.run([sys.executable, "-c", RING, str(tmp_path / "bell")], check=True)
    assert first.begun() == second.visible()
    assert len(marks | {first.begun()}) == 5


def test_a_commit_in_progress_is_visible(tmp_path: Path) -> None:
    writer, other, reader = (Bell(tmp_path / "bell") for _ in range(3))
    before = reader.begun()
    with writer.ringing():
        assert reader.begun() not in (before, reader.visible())
        # Another writer commits after the first, and before the first has updated the word.
        with other.ringing():
            mark = reader.begun()
    assert reader.begun() == mark != reader.visible()
    ring(writer)
    assert reader.begun() == reader.visible()


def test_opening_changes_nothing(tmp_path: Path) -> None:
    bell = Bell(tmp_path / "bell")
    ring(bell)
    words = bell.begun(), bell.visible()
    assert (Bell(tmp_path / "bell").begun(), bell.visible()) == words
    with bell.ringing():
        mark = bell.begun()
        assert Bell(tmp_path / "bell").begun() == mark


def test_the_word_of_an_older_version_is_preserved(tmp_path: Path) -> None:
    (tmp_path / "bell").write_bytes(b"12345678")
    bell = Bell(tmp_path / "bell")
    assert (bell.begun(), bell.visible()) == (b"12345678", bytes(8))
    ring(bell)
    assert bell.begun() == bell.visible()


def test_reading_without_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bell, real = Bell(tmp_path / "bell"), os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    reader = Bell(tmp_path / "bell")
    mark = reader.begun()
    ring(bell)
    assert reader.begun() == bell.begun() != mark
    with pytest.raises(StorageFailed, match="could not be written") as refused:
        ring(reader)
    assert "no permission" in str(refused.value.detail)
    with pytest.raises(OSError, match="other"):
        Bell(tmp_path / "other")


def test_a_token_changes_only_on_commits(tmp_path: Path) -> None:
    writer = Catalog(tmp_path, create=True)
    reader = Catalog(tmp_path)
    for _ in range(3):
        token = reader.token()
        with pytest.raises(ZeroDivisionError), writer.write() as tx:
            take_seq(tx)
            _ = 1 // 0
        assert reader.token() == token
        with writer.write() as tx:
            take_seq(tx)
            assert reader.token() == token
        assert reader.token() != token
    reader.close()
    writer.close()


def test_a_catalog_without_a_bell_queries_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Catalog(tmp_path, create=True)
    monkeypatch.setattr("tureen.pot.catalog.open_bell", lambda path: None)  # noqa: ARG005
    reader = Catalog(tmp_path)
    for _ in range(3):
        token = reader.token()
        assert reader.token() == token
        with writer.write() as tx:
            take_seq(tx)
        assert reader.token() != token
    reader.close()
    writer.close()


@pytest.mark.parametrize("off", ["reader", "writer", "both"])
def test_commits_are_seen_at_once_without_the_bell(tmp_path: Path, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a process that has the bell on: one that has it off rings it."""
    monkeypatch.setattr(commit_token, "CHECK_INTERVAL", float("inf"))

    def opened(role: str) -> Catalog:
        if off not in (role, "both"):
            return Catalog(tmp_path, create=True)
        with without_fast_paths(FastPath.BELL):
            return Catalog(tmp_path, create=True)

    writer, reader = opened("writer"), opened("reader")
    for _ in range(3):
        token = reader.token()
        assert reader.token() == token
        with writer.write() as tx:
            take_seq(tx)
            assert reader.token() == token
        assert reader.token() != token
    reader.close()
    writer.close()


def test_without_the_bell_sqlite_is_queried_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_token, "CHECK_INTERVAL", float("inf"))
    queried: list[int] = []
    real = commit_token.DataVersion.read

    def read(version: commit_token.DataVersion) -> int:
        # Threads of other open pots query their own databases.
        if threading.current_thread() is threading.main_thread():
            queried.append(1)
        return real(version)

    monkeypatch.setattr(commit_token.DataVersion, "read", read)
    with Catalog(tmp_path, create=True) as catalog:
        for _ in range(5):
            catalog.token()
    assert len(queried) == 1
    with without_fast_paths(FastPath.BELL), Catalog(tmp_path) as catalog:
        for _ in range(5):
            catalog.token()
    assert len(queried) == 1 + 5
