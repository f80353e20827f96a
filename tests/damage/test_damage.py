"""Damage by kind: indexes and cells are computed again, and of the tuples only the damaged block is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.damage import flips
from tureen.errors import DamagedFile, PotError
from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.damage import noted_damage
from tureen.pot.parts import Parts
from tureen.pot.runs import Run, live_runs, rejected_rows
from tureen.pot.status import pot_status
from tureen.soup.integrity import backup, verify
from tureen.stems.run import Layout
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture(scope="session")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[Any]]:
    """An intact pot, the handles of its queries, and their answers."""
    root = tmp_path_factory.mktemp("intact") / "pot"
    handles = flips.build(root)
    return root, handles, flips.answers(root, handles)


@pytest.fixture
def pot(intact: tuple[Path, list[str], list[Any]], tmp_path: Path) -> Path:
    """A copy of the intact pot to be damaged."""
    return Path(shutil.copytree(intact[0], tmp_path / "pot"))


def runs(root: Path, stream: int = 1) -> list[Run]:
    catalog = Catalog(root)
    with catalog.read() as tx:
        result = live_runs(tx, stream)
    catalog.close()
    return result


def damage(path: Path, part: int | None = None) -> None:
    """Change a byte in the middle of one part of a file, or of the whole file."""
    data = bytearray(path.read_bytes())
    start, length = 0, len(data)
    if part is not None:
        start, length, _ = Parts(path)._entries[part]
    data[start + length // 2] ^= 0x10
    path.write_bytes(data)


def layout(root: Path, run: Run) -> Layout:
    return Layout.of(Parts(root / run.path))


def noted(root: Path) -> list[tuple[str, bool]]:
    catalog = Catalog(root)
    with catalog.read() as tx:
        result = [(damage.path, damage.lost) for damage in noted_damage(tx)]
    catalog.close()
    return result


def test_flipped_bytes_give_right_answers_or_errors(pot: Path, intact: tuple[Path, list[str], list[Any]]) -> None:
    _, handles, expected = intact
    assert not any(isinstance(answer, Exception) for answer in expected)
    assert list(flips.flip(pot, handles, expected, seed=7, count=60)) == []


def test_damaged_index_and_cells_change_no_answer_and_are_repaired(
    pot: Path, intact: tuple[Path, list[str], list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    _, handles, expected = intact
    indexed = [run for run in runs(pot) if run.indexed]
    for run in indexed:
        for part in range(len(Parts(pot / run.path))):
            if not layout(pot, run).holds_tuples(part):
                damage(pot / run.path, part)
        for file in run.cells:
            damage(pot / file.path, 0)
    assert flips.answers(pot, handles) == expected
    assert "computed again from the tuples" in caplog.text
    names = {run.path for run in indexed}
    assert names & {path for path, lost in noted(pot) if not lost}
    verify(pot)
    engine = ManualEngine(pot)
    engine.repair()
    engine.compile()
    engine.pay()
    engine.close()
    assert not names & {run.path for run in runs(pot)}
    assert verify(pot).damaged == ()
    assert noted(pot) == []
    assert flips.answers(pot, handles) == expected


def test_damaged_query_run_is_compiled_again(pot: Path, intact: tuple[Path, list[str], list[Any]]) -> None:
    _, handles, expected = intact
    (queries,) = (pot / "queries").glob("*-1.queries")
    damage(queries, 0)
    engine = ManualEngine(pot)
    # A batch that cannot be matched is accepted, and its cells are owed.
    engine.push("t", flips.table(flips.rows(20_000, 5000)))
    assert noted(pot) == [(f"queries/{queries.name}", False)]
    with engine.catalog.read() as tx:
        assert pot_status(tx, {})["damaged"] == [f"queries/{queries.name}"]
    before = [engine.invoke(handle).table for handle in handles]
    engine.repair()
    engine.compile()
    engine.pay()
    assert noted(pot) == []
    assert [engine.invoke(handle).table for handle in handles] == before
    assert before[0].num_rows > len(expected[0]["k"])
    engine.close()
    assert verify(pot).damaged == ()


def test_only_answers_that_need_a_damaged_block_fail(pot: Path) -> None:
    merged = max(runs(pot), key=lambda run: run.rows)
    damage(pot / merged.path, 0)
    engine = ManualEngine(pot)
    needed = engine.register("SELECT k FROM t", materialize=False)
    later = engine.register("SELECT k FROM t WHERE k < 4000 BEGIN NOW - 1 HOUR END NOW", materialize=False)
    totals = engine.register("SELECT count(*) AS n FROM t BEGIN NOW - 1 HOUR END NOW", materialize=False)
    other_stream = engine.register("SELECT k FROM other", materialize=False)
    with pytest.raises(DamagedFile, match=merged.path) as raised:
        engine.invoke(needed)
    assert "tureen verify" in str(raised.value)
    for handle in (later, totals, other_stream):
        assert len(engine.invoke(handle)) > 0
    engine.close()


def test_blocks_of_a_run_are_damaged_one_by_one(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("t", flips.SCHEMA, "ts", clock="stream")
    eager = engine.register("SELECT k, v, s FROM t WHERE k < 2")
    rare = engine.register("SELECT ts, k FROM t WHERE ts < TIMESTAMP '1970-01-01 00:01:00'")
    engine.compile()
    engine.push("t", flips.table(flips.rows(0, 3 * 65_536)))
    expected = engine.invoke(rare).table
    engine.close()
    (run,) = runs(tmp_path / "pot")
    damage(tmp_path / "pot" / run.path, 2)
    engine = ManualEngine(tmp_path / "pot")
    newest = engine.register("SELECT k FROM t BEGIN NOW - 10 HOURS END NOW", materialize=False)
    with pytest.raises(DamagedFile):
        engine.invoke(eager)
    assert engine.invoke(rare).table == expected
    assert len(engine.invoke(newest)) == 36_001
    # The first and the third block remain, in order and with their ids.
    engine.close()
    assert verify(tmp_path / "pot", repair=True).given_up == 65_536
    engine = ManualEngine(tmp_path / "pot")
    remaining = [row for number, row in enumerate(flips.rows(0, 3 * 65_536)) if number // 65_536 != 1 and row["k"] < 2]
    assert engine.invoke(eager).table.column("k").to_pylist() == [row["k"] for row in remaining]
    engine.close()


def test_damaged_tail_keeps_only_its_own_rows_from_answers(pot: Path) -> None:
    tail = runs(pot)[-3:]
    damage(pot / tail[1].path, 0)
    engine = ManualEngine(pot)
    everything = engine.register("SELECT k FROM t BEGIN NOW - 45 SECONDS END NOW", materialize=False)
    newest = engine.register("SELECT k FROM t BEGIN NOW - 19 SECONDS END NOW", materialize=False)
    with pytest.raises(DamagedFile, match=tail[1].path):
        engine.invoke(everything)
    assert len(engine.invoke(newest)) == 20
    engine.close()


def test_merging_goes_on_around_damaged_tuples(pot: Path) -> None:
    tail = runs(pot)[-3:]
    damage(pot / tail[0].path, 0)
    engine = ManualEngine(pot)
    for number in range(20):
        engine.push("t", flips.table(flips.rows(20_000 + 20 * number, 20)))
        engine.seal()
    assert tail[0].path in {run.path for run in runs(pot)}
    assert len(runs(pot)) < 20
    assert (tail[0].path, True) in noted(pot)
    engine.close()


def test_lost_blocks_are_given_up_and_reported(pot: Path) -> None:
    tail = runs(pot)[-3:]
    damage(pot / tail[1].path, 0)
    report = verify(pot)
    assert [(file.path, file.lost) for file in report.damaged] == [(tail[1].path, True)]
    repaired = verify(pot, repair=True)
    assert repaired.given_up == tail[1].rows
    assert verify(pot).damaged == ()
    catalog = Catalog(pot)
    with catalog.read() as tx:
        (rejected,) = rejected_rows(tx, 1)
    catalog.close()
    assert tail[1].path in rejected["reason"]
    assert json.dumps(rejected["row"]) == json.dumps({"rows": tail[1].rows})
    engine = ManualEngine(pot)
    everything = engine.register("SELECT k FROM t BEGIN NOW - 59 SECONDS END NOW", materialize=False)
    assert len(engine.invoke(everything)) == 40
    engine.close()


def test_damaged_table_and_template_are_errors_that_name_the_file(
    pot: Path, intact: tuple[Path, list[str], list[Any]]
) -> None:
    _, handles, expected = intact
    for path in [*(pot / "tables").rglob("*.arrow"), *(pot / "templates").glob("*.arrow")]:
        damage(path, 0)
    answers = flips.answers(pot, handles)
    assert answers[:-4] == expected[:-4]
    for error in answers[-4:]:
        assert isinstance(error, DamagedFile)
        assert error.file.startswith(("tables/", "templates/"))


def test_changed_value_in_a_closed_catalog_is_an_error(pot: Path) -> None:
    data = (pot / CATALOG_FILE).read_bytes()
    assert data.count(b"SELECT k, v FROM t WHERE k < 300") == 1
    (pot / CATALOG_FILE).write_bytes(data.replace(b"FROM t WHERE k < 300", b"FROM t WHERE k < 900"))
    with pytest.raises(PotError, match=r"catalog\.sqlite' is damaged"):
        Catalog(pot)
    # Without a backup, the catalog can be accepted as it is.
    verify(pot, repair=True)
    Catalog(pot).close()


def test_backup_of_a_pot_answers_the_same(pot: Path, intact: tuple[Path, list[str], list[Any]], tmp_path: Path) -> None:
    _, handles, expected = intact
    backup(pot, tmp_path / "copy")
    assert flips.answers(tmp_path / "copy", handles) == expected
    assert verify(tmp_path / "copy").damaged == ()
    with pytest.raises(PotError, match="not empty"):
        backup(pot, tmp_path / "copy")


def test_missing_file_is_an_error_that_names_it(pot: Path, intact: tuple[Path, list[str], list[Any]]) -> None:
    _, handles, expected = intact
    tail = runs(pot)[-3:]
    (pot / tail[1].path).unlink()
    (table,) = (pot / "tables").rglob("*.arrow")
    table.unlink()
    answers = flips.answers(pot, handles)
    for answer, expected_answer in zip(answers, expected, strict=True):
        assert answer == expected_answer or (isinstance(answer, DamagedFile) and answer.detail == "the file is missing")
    assert isinstance(answers[-1], DamagedFile)
    engine = ManualEngine(pot)
    newest = engine.register("SELECT k FROM t BEGIN NOW - 19 SECONDS END NOW", materialize=False)
    assert len(engine.invoke(newest)) == 20
    for number in range(20):
        engine.push("t", flips.table(flips.rows(20_000 + 20 * number, 20)))
        engine.seal()
    assert (tail[1].path, True) in noted(pot)
    assert len(runs(pot)) < 20, "merging goes on around it"
    engine.close()


def test_backup_leaves_out_what_the_pot_has_lost(pot: Path, tmp_path: Path) -> None:
    lost = runs(pot)[-1]
    (pot / lost.path).unlink()
    backup(pot, tmp_path / "copy")
    assert [damage.path for damage in verify(tmp_path / "copy").damaged] == [lost.path]
