"""The word that changes with every commit, in this process and in others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tureen.pot.bell import Bell
from tureen.pot.catalog import Catalog, take_seq

RING = "import sys; from pathlib import Path; from tureen.pot.bell import Bell; Bell(Path(sys.argv[1])).ring()"


def test_whoever_rings_all_hear_it(tmp_path: Path) -> None:
    one, other = Bell(tmp_path / "bell"), Bell(tmp_path / "bell")
    heard = {one.word()}
    for bell in (one, other, one):
        bell.ring()
        assert one.word() == other.word()
        heard.add(one.word())
    subprocess.run([sys.executable, "-c", RING, str(tmp_path / "bell")], check=True)
    assert one.word() == other.word()
    assert len(heard | {one.word()}) == 5


def test_opening_it_rings_nothing(tmp_path: Path) -> None:
    bell = Bell(tmp_path / "bell")
    bell.ring()
    word = bell.word()
    assert Bell(tmp_path / "bell").word() == bell.word() == word


def test_who_may_not_write_there_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bell, real = Bell(tmp_path / "bell"), os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(path)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    reader = Bell(tmp_path / "bell")
    word = reader.word()
    bell.ring()
    assert reader.word() == bell.word() != word
    with pytest.raises(TypeError):
        reader.ring()
    with pytest.raises(OSError, match="other"):
        Bell(tmp_path / "other")


def test_a_catalog_without_a_bell_asks_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Catalog(tmp_path, create=True)
    monkeypatch.setattr("tureen.pot.catalog._bell", lambda path: None)  # noqa: ARG005
    reader = Catalog(tmp_path)
    for _ in range(3):
        token = reader.token()
        assert reader.token() == token
        with writer.write() as tx:
            take_seq(tx)
        assert reader.token() != token
    reader.close()
    writer.close()
