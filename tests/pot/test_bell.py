"""The word that changes with every commit, in this process and in others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tureen.pot.bell import Bell

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
