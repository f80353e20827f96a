"""The checksum of a closed catalog: verified when the catalog is opened; an invalid digest is ignored."""

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


def test_a_changed_byte_is_detected(root: Path) -> None:
    data = bytearray((root / CATALOG_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (root / CATALOG_FILE).write_bytes(data)
    with pytest.raises(DamagedFile, match="catalog"):
        Catalog(root)


@pytest.mark.parametrize("text", ["", "abc"])
def test_a_truncated_digest_is_ignored(root: Path, text: str) -> None:
    (root / "catalog.digest").write_text(text)
    Catalog(root).close()


def test_writing_removes_the_digest_and_closing_writes_it(root: Path) -> None:
    assert (root / "catalog.digest").exists()
    hand = HandTurned(root)
    hand.push("s", [{"n": 1}])
    assert not (root / "catalog.digest").exists()
    hand.close()
    Digest(root / CATALOG_FILE).check()


def test_verifying_preserves_the_locks_of_other_connections(root: Path) -> None:
    """POSIX releases a process's locks on a file when any descriptor of it is closed; the WAL would be deleted."""
    reader = HandTurned(root)
    assert len(reader.invoke("all")) == 0
    for number in (1, 2, 3):
        Digest(root / CATALOG_FILE).check()
        Catalog(root).close()
        subprocess.run([sys.executable, "-c", OTHER, str(root), str(number)], check=True)
        assert len(reader.invoke("all")) == number
    reader.close()
