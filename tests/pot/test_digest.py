"""The checksum of a closed catalog: verified when it is opened, never taken for one where it is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tureen.errors import DamagedFile
from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.digest import Digest
from tureen.testing.hand_turned import HandTurned

OTHER = """
import sys
from pathlib import Path
from tureen.testing.hand_turned import HandTurned
hand = HandTurned(Path(sys.argv[1]))
hand.push("s", [{"n": int(sys.argv[2])}])
hand.close()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    hand = HandTurned(tmp_path / "pot")
    hand.create_stream("s", "n INT")
    hand.register("SELECT n FROM s", name="all")
    hand.close()
    return tmp_path / "pot"


def test_a_changed_byte_is_noticed(root: Path) -> None:
    data = bytearray((root / CATALOG_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (root / CATALOG_FILE).write_bytes(data)
    with pytest.raises(DamagedFile, match="catalog"):
        Catalog(root)


@pytest.mark.parametrize("text", ["", "abc"])
def test_a_digest_that_is_not_whole_is_none(root: Path, text: str) -> None:
    (root / "catalog.digest").write_text(text)
    Catalog(root).close()


def test_whoever_writes_removes_it_and_whoever_closes_writes_it(root: Path) -> None:
    assert (root / "catalog.digest").exists()
    hand = HandTurned(root)
    hand.push("s", [{"n": 1}])
    assert not (root / "catalog.digest").exists()
    hand.close()
    Digest(root / CATALOG_FILE).check()


def test_verifying_it_leaves_the_locks_of_other_connections(root: Path) -> None:
    """POSIX drops a process's locks on a file with any descriptor of it: another process would delete the WAL."""
    reader = HandTurned(root)
    assert len(reader.invoke("all")) == 0
    for number in (1, 2, 3):
        Digest(root / CATALOG_FILE).check()
        Catalog(root).close()
        subprocess.run([sys.executable, "-c", OTHER, str(root), str(number)], check=True)
        assert len(reader.invoke("all")) == number
    reader.close()
