"""A pot that version 0.3 made is converted when it is opened, and answers as before.

`pot-format-2.tar.xz` is such a pot: a stream with an indexed run, a tail, rows in the inbox that Spark has not taken,
materialised and lazy queries, a template with an unregistered query, a table. `answers.json` is what 0.3 answered once
it had taken all rows, and the changes of one query since a position that it had returned.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import tureen
from tureen.errors import PotVersion
from tureen.migration.migrate import MIGRATIONS, format_of
from tureen.pot.catalog import CATALOG_FILE, FORMAT_VERSION, Catalog
from tureen.pot.digest import Digest

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "answers.json").read_text())


@pytest.fixture
def pot(tmp_path: Path) -> Path:
    with tarfile.open(HERE / "pot-format-2.tar.xz") as archive:
        # Python has filters since 3.11.4, and asks for one since 3.12.
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path, **options)
    return tmp_path / "pot"


def plain(rows: Any) -> Any:
    return json.loads(json.dumps(list(rows), default=str))


def test_every_earlier_format_has_a_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(2, FORMAT_VERSION))


def test_converted_pot_answers_as_before(pot: Path) -> None:
    with tureen.open(pot, mode="write", master="local[2]") as soup:
        assert format_of(pot) == FORMAT_VERSION
        # Rows that were pushed before are taken now, and their keys are known.
        rows = [{"sym": "IBM", "price": 1.0, "qty": 1, "ts": "2026-01-01T00:00:00Z"}]
        soup.push("trades", rows)
        soup.settle()
        soup.query("big")
        answers = {name: plain(soup.query(name).invoke()) for name in EXPECTED["answers"]}
        assert soup.table("companies").to_pylist() == [{"sym": "IBM", "sector": "it"}, {"sym": "GE", "sector": None}]
        assert [entry["queries"] for entry in soup.templates()] == [2]
        changes = [change.row for change in soup.query("late").changes(since=EXPECTED["position"], timeout=0)]
        assert plain(changes) == EXPECTED["changes"]
    # The row that this test added is in the groups only.
    totals = answers.pop("totals")
    expected = dict(EXPECTED["answers"])
    for group in expected.pop("totals"):
        added = group["sym"] == "IBM"
        assert {**group, "n": group["n"] + added, "total": group["total"] + added} in totals
    assert answers == expected


def test_converted_catalog_has_the_tables_of_a_new_one(pot: Path, tmp_path: Path) -> None:
    with tureen.open(pot):
        pass
    Catalog(tmp_path, create=True).close()
    assert described(pot) == described(tmp_path)


def described(root: Path) -> dict[str, Any]:
    """All tables with their columns and indexes, and all triggers."""
    database = sqlite3.connect(root / CATALOG_FILE)
    try:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        described_tables: dict[str, Any] = {
            name: (
                sorted(tuple(column[1:]) for column in database.execute(f"PRAGMA table_info({name})")),
                sorted(
                    (index[2], [column[2] for column in database.execute(f"PRAGMA index_info({index[1]})")])
                    for index in database.execute(f"PRAGMA index_list({name})")
                ),
            )
            for name in tables
        }
        triggers = database.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'")
        return described_tables | {"triggers": sorted(triggers)}
    finally:
        database.close()


def test_reader_refuses_an_earlier_format_and_changes_nothing(pot: Path) -> None:
    before = sorted(path.name for path in pot.rglob("*"))
    with pytest.raises(PotVersion, match="format version 2") as refused:
        tureen.open(pot, mode="read")
    assert refused.value.hint == "open it once for writing to convert it"
    assert sorted(path.name for path in pot.rglob("*")) == before


@pytest.mark.parametrize("point", ["migration.before_commit", "migration.after_commit"])
def test_migration_continues_after_a_crash(pot: Path, tmp_path: Path, point: str) -> None:
    armed = tmp_path / "armed"
    armed.mkdir()
    (armed / point).touch()
    command = [sys.executable, "-c", f"import tureen; tureen.open({str(pot)!r})"]
    process = subprocess.run(command, env={**os.environ, "TUREEN_CRASH_DIR": str(armed)}, check=False)
    assert process.returncode == -9
    assert format_of(pot) == (2 if point == "migration.before_commit" else 3)
    with tureen.open(pot) as soup:
        answer = soup.query("rules.0").invoke()
        assert len(answer) > 0
        assert tureen.verify(pot).damaged == ()


def test_other_formats_are_refused(pot: Path) -> None:
    database = sqlite3.connect(pot / CATALOG_FILE)
    database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    database.commit()
    database.close()
    Digest(pot / CATALOG_FILE).remove()
    with pytest.raises(PotVersion, match="format version 99") as refused:
        tureen.open(pot)
    assert refused.value.hint == "install a newer Tureen"
