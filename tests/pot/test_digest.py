"""The checksum of a closed catalog: verified when the catalog is opened; an invalid digest is ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tureen.errors import DamagedFile
from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.digest import Digest
from tureen.testing.manual_engine import ManualEngine

OTHER = """
import sys
from pathlib import Path
from tureen.testing.manual_engine import ManualEngine
for line in sys.stdin:
    engine = ManualEngine(Path(sys.argv[1]))
    engine.push("s", [{"n": int(line)}])
    engine.close()
    print("closed", flush=True)
"""
"""A process that opens the pot, pushes and closes it for each number that it reads."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("s", "n INT")
    engine.register("SELECT n FROM s", name="all")
    engine.close()
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
    engine = ManualEngine(root)
    engine.push("s", [{"n": 1}])
    assert not (root / "catalog.digest").exists()
    engine.close()
    Digest(root / CATALOG_FILE).check()


def test_verifying_preserves_the_locks_of_other_connections(root: Path) -> None:
    """POSIX releases a process's locks on a file when any descriptor of it is closed; the WAL would be deleted."""
    reader = ManualEngine(root)
    assert len(reader.invoke("all")) == 0
    command = [sys.executable, "-c", OTHER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for number in (1, 2, 3):
            Digest(root / CATALOG_FILE).check()
            Catalog(root).close()
            print(number, file=other.stdin, flush=True)
            assert other.stdout.readline() == "closed\n"
            assert len(reader.invoke("all")) == number
        other.stdin.close()
        assert other.wait() == 0
    reader.close()
