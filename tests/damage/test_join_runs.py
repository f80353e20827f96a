"""Damaged and missing results of kept joins: answers stay the same, and the results are written again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.kept_joins_pot import SQL, answer, check_kept, joined_pot, kept, pairs, rows
from tureen.pipeline.verifying import repair_pot, verify_pot
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    """A pot whose joins are kept."""
    with joined_pot(tmp_path) as opened:
        yield opened


def test_damage_does_not_change_answers_and_is_repaired(engine: ManualEngine) -> None:
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    (file,) = (engine.catalog.root / "joins").rglob("*.run")
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.chmod(0o600)
    file.write_bytes(content)
    assert answer(engine, handle) == answer(engine, lazy)
    assert not kept(engine, handle)["used"]
    engine.keep_joins()
    check_kept(engine, [handle], [lazy])


def test_a_missing_file_does_not_change_answers_and_is_repaired(engine: ManualEngine) -> None:
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    (file,) = (engine.catalog.root / "joins").rglob("*.run")
    file.unlink()
    reader = ManualEngine(engine.catalog.root)
    assert answer(reader, handle) == answer(engine, lazy)
    assert not kept(reader, handle)["used"]
    engine.keep_joins()
    check_kept(reader, [handle], [lazy])
    reader.close()


def test_verifying_repairs_damaged_results(engine: ManualEngine) -> None:
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    (file,) = (engine.catalog.root / "joins").rglob("*.run")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert len(verify_pot(engine.catalog, lambda *_: None).damaged) == 1
    assert repair_pot(engine.catalog).files == 1
    assert not verify_pot(engine.catalog, lambda *_: None).damaged
    assert answer(engine, handle) == answer(engine, lazy)
    engine.keep_joins()
    check_kept(engine, [handle], [lazy])


def test_damage_that_keeping_finds_is_repaired(engine: ManualEngine) -> None:
    """The new run would absorb the damaged one, which nobody has invoked since."""
    (handle,), (lazy,) = pairs(engine, SQL)
    engine.keep_joins()
    (file,) = (engine.catalog.root / "joins").rglob("*.run")
    content = bytearray(file.read_bytes())
    content[5] ^= 1
    file.write_bytes(content)
    engine.push("a", rows(30, 60))
    assert not engine.keep_joins_once(), "the damage is noted"
    engine.keep_joins()
    check_kept(engine, [handle], [lazy])
