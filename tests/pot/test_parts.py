"""Files of parts: every byte has a checksum, and a damaged part leaves the others readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tureen.errors import DamagedFile
from tureen.pot.parts import Parts, PartsWriter

CONTENTS = [b"", b"a", bytes(64), b"tuples" * 50]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open(tmp_path / "a-0.run", "wb") as file:
        parts = PartsWriter(file, "a-0.run")
        for content in CONTENTS:
            parts.add(content)
        parts.finish(b"about")
    return tmp_path / "a-0.run"


def test_parts_are_read_as_they_were_written(path: Path) -> None:
    parts = Parts(path)
    assert [parts.read(number).to_pybytes() for number in range(len(parts))] == CONTENTS
    assert parts.about == b"about"
    assert parts.has_whole_directory()


def test_a_flipped_bit_damages_at_most_one_part(path: Path) -> None:
    written = path.read_bytes()
    for offset in range(len(written)):
        changed = bytearray(written)
        changed[offset] ^= 1 << offset % 8
        path.write_bytes(changed)
        parts = Parts(path)
        damaged = [number for number in range(len(parts)) if not readable(parts, number)]
        assert len(damaged) + (not parts.has_whole_directory()) == 1, offset
    path.write_bytes(written)
    assert Parts(path).has_whole_directory()


def readable(parts: Parts, number: int) -> bool:
    try:
        return bool(parts.read(number).to_pybytes() == CONTENTS[number])
    except DamagedFile:
        return False


@pytest.mark.parametrize("size", [0, 1, 39, 80, 200])
def test_a_truncated_file_is_damaged(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedFile):
        Parts(path)


def test_a_renamed_file_is_damaged(path: Path) -> None:
    with pytest.raises(DamagedFile):
        Parts(path.rename(path.with_name("b-0.run")))


def test_a_missing_file_is_not_reported_as_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Parts(tmp_path / "missing.run")
