"""Tables: created from rows in any form and replaced atomically, without Spark."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import select

import tureen
from tureen.errors import (
    DuplicateName,
    InvalidRows,
    InvalidSchema,
    PotError,
    TureenError,
    UnknownStream,
    UnknownTable,
)
from tureen.pot.catalog import Catalog, check_attempt
from tureen.pot.catalog_tables import dead_attempts, dimensions
from tureen.pot.streams import create_stream, find_stream
from tureen.pot.sweep import sweep
from tureen.schema import Schema

SCHEMA = "sym STRING, sector STRING"
ROWS = [{"sym": "IBM", "sector": "tech"}, {"sym": "GE", "sector": None}]


@pytest.fixture
def soup(engineless: tureen.Soup) -> tureen.Soup:
    return engineless


def files(soup: tureen.Soup) -> list[Path]:
    return sorted(path for path in (soup.path / "tables").rglob("*") if path.is_file())


def test_create_replace_list_and_drop(soup: tureen.Soup) -> None:
    assert soup.tables() == []
    soup.create_table("companies", SCHEMA, ROWS)
    soup.create_table("empty", "a INT")
    assert soup.table("COMPANIES").to_pylist() == ROWS
    assert soup.table("empty").schema == Schema.parse("a INT").arrow
    assert soup.table("empty").num_rows == 0
    first, second = soup.tables()
    assert (first["name"], first["schema"], first["rows"]) == ("companies", "`sym` STRING, `sector` STRING", 2)
    assert second["name"] == "empty"
    assert soup.status()["tables"]["companies"] == {"rows": 2, "bytes": first["bytes"]}
    soup.replace_table("Companies", [{"sym": "ORCL"}])
    assert soup.table("companies").to_pylist() == [{"sym": "ORCL", "sector": None}]
    assert soup.tables()[0]["changed_at"] > first["changed_at"]
    soup.replace_table("companies", [])
    assert soup.table("companies").to_pylist() == []
    soup.drop_table("companies")
    assert [info["name"] for info in soup.tables()] == ["empty"]
    with pytest.raises(UnknownTable, match="did you mean 'empty'"):
        soup.table("empti")
    soup.create_table("companies", "a INT", [{"a": 1}])
    assert soup.table("companies").to_pylist() == [{"a": 1}]


def test_tables_are_visible_to_other_processes(soup: tureen.Soup) -> None:
    soup.create_table("companies", SCHEMA, ROWS)
    code = """
import sys, tureen
with tureen.open(sys.argv[1]) as soup:
    print(soup.table("companies").to_pylist())
    soup.replace_table("companies", [{"sym": "X"}])
print("pyspark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, str(soup.path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(ROWS), "False"]
    assert soup.table("companies").to_pylist() == [{"sym": "X", "sector": None}]
    with tureen.open(soup.path, mode="read") as reader:
        assert len(reader.table("companies")) == 1
        changes: list[Callable[[], None]] = [
            lambda: reader.replace_table("companies", []),
            lambda: reader.create_table("x", "a INT"),
            lambda: reader.drop_table("companies"),
        ]
        for change in changes:
            with pytest.raises(TureenError, match="reading only"):
                change()


def test_replacing_with_none_is_an_error(soup: tureen.Soup) -> None:
    soup.create_table("t", SCHEMA, ROWS)
    with pytest.raises(InvalidRows, match="rows must not be None") as caught:
        soup.replace_table("t", None)
    assert caught.value.hint == "pass [] for no rows"
    assert soup.table("t").to_pylist() == ROWS
    soup.replace_table("t", [])
    assert soup.table("t").num_rows == 0


def test_bad_rows_change_nothing(soup: tureen.Soup, tmp_path: Path) -> None:
    soup.create_table("t", SCHEMA, ROWS)
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    before = files(soup)
    for rows, says in (
        ([{"sym": "A"}, {"sym": 5}], "row 1: column 'sym' is STRING, not 5"),
        ([{"name": "A"}], "unknown column 'name'"),
        (pa.table({"sym": [1]}), "column 'sym' is STRING, not int64"),
        ({"sym": "A"}, "rows must be .*, got dict"),
        (7, "rows must be .*, got int"),
        (b"x", "rows must be .*, got bytes"),
        (tmp_path / "none.csv", "not found"),
        (tmp_path / "x.parquet", "cannot be read"),
        (str(tmp_path / "x.json"), "must be a .csv or .parquet file"),
        (tmp_path, "must be a .csv or .parquet file"),
    ):
        with pytest.raises(InvalidRows, match=says):
            soup.replace_table("t", rows)
    assert soup.table("t").to_pylist() == ROWS
    assert files(soup) == before


def test_streams_and_tables_share_a_namespace(soup: tureen.Soup) -> None:
    soup.create_table("companies", SCHEMA, ROWS)
    catalog = Catalog(soup.path)
    plain = Schema.parse("a INT")
    with catalog.write() as tx:
        create_stream(tx, "trades", plain, clock="wall", retain=None, source=None)
    with pytest.raises(DuplicateName, match="there is a stream named 'Trades' already"):
        soup.create_table("Trades", "a INT")
    with pytest.raises(DuplicateName, match="there is a table named 'COMPANIES' already"):
        soup.create_table("COMPANIES", "a INT")
    with pytest.raises(DuplicateName, match="there is a table named 'Companies' already"), catalog.write() as tx:
        create_stream(tx, "Companies", plain, clock="wall", retain=None, source=None)
    with pytest.raises(UnknownTable, match="'trades' is a stream, not a table"):
        soup.table("TRADES")
    with pytest.raises(UnknownTable, match="'trades' is a stream"):
        soup.drop_table("trades")
    with pytest.raises(UnknownStream, match="'companies' is a table"), catalog.read() as tx:
        find_stream(tx, "COMPANIES")
    soup.drop_table("companies")
    with catalog.write() as tx:
        create_stream(tx, "Companies", plain, clock="wall", retain=None, source=None)
    catalog.close()


def test_concurrent_creation_of_the_same_table(soup: tureen.Soup) -> None:
    soup.create_table("first", "a INT")
    outcomes: list[str] = []
    both = threading.Barrier(2)

    def create(number: int) -> None:
        both.wait()
        try:
            soup.create_table("t", "a INT", [{"a": number}])
            outcomes.append(f"made {number}")
        except DuplicateName:
            outcomes.append("taken")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "taken" in outcomes
    (created,) = (text for text in outcomes if text != "taken")
    assert soup.table("t").to_pylist() == [{"a": int(created.split()[1])}]


def test_readers_see_whole_contents_during_replacements(soup: tureen.Soup) -> None:
    soup.create_table("t", "n INT, place INT", rows_of(0))
    held = soup.table("t")
    catalog = Catalog(soup.path)
    done = threading.Event()
    seen: list[set[int]] = []
    failures: list[BaseException] = []

    def read() -> None:
        with tureen.open(soup.path, mode="read") as reader:
            while not done.is_set():
                try:
                    table = reader.table("t")
                    assert table.num_rows == 500
                    seen.append(set(table.column("n").to_pylist()))
                except BaseException as error:
                    failures.append(error)
                    return

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 60):
        soup.replace_table("t", rows_of(number))
        sweep(catalog, grace=-1)
    done.set()
    for thread in threads:
        thread.join()
    catalog.close()
    assert failures == []
    assert all(len(numbers) == 1 for numbers in seen)
    assert set(held.column("n").to_pylist()) == {0}, "a content that is held stays readable after it was swept"
    assert soup.table("t").column("n").to_pylist() == [59] * 500
    assert len(files(soup)) == 1


def rows_of(number: int) -> pa.Table:
    return pa.table({"n": pa.array([number] * 500, pa.int32()), "place": pa.array(range(500), pa.int32())})


def test_a_reader_retries_if_the_content_was_swept(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_table("t", "n INT, place INT", rows_of(1))
    catalog = Catalog(soup.path)
    real = tureen.soup.tables.read_content

    def late(root: Path, content: Any) -> pa.Table:
        monkeypatch.setattr("tureen.soup.tables.read_content", real)
        soup.replace_table("t", rows_of(2))
        sweep(catalog, grace=-1)
        return real(root, content)

    monkeypatch.setattr("tureen.soup.tables.read_content", late)
    assert soup.table("t").column("n").to_pylist() == [2] * 500
    catalog.close()


def test_the_sweeper_removes_replaced_contents_after_the_grace(soup: tureen.Soup) -> None:
    soup.create_table("t", SCHEMA, ROWS)
    (old,) = files(soup)
    soup.replace_table("t", ROWS)
    catalog = Catalog(soup.path)
    assert sweep(catalog, abandoned_after=-1) == 0
    assert len(files(soup)) == 2
    assert sweep(catalog, abandoned_after=-1, grace=-1) == 1
    (current,) = files(soup)
    assert current != old
    assert soup.table("t").to_pylist() == ROWS
    soup.drop_table("t")
    assert sweep(catalog, abandoned_after=-1, grace=-1) == 1
    assert files(soup) == []
    catalog.close()


def test_an_abandoned_replacement_cannot_commit(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_table("t", SCHEMA, ROWS)
    catalog = Catalog(soup.path)
    monkeypatch.setattr(
        "tureen.soup.tables.crash_point",
        lambda point: point == "table.before_commit" and sweep(catalog, abandoned_after=-1),
    )
    with pytest.raises(PotError, match="was abandoned"):
        soup.replace_table("t", [])
    monkeypatch.undo()
    assert soup.table("t").to_pylist() == ROWS
    with catalog.read() as tx:
        (attempt,) = tx.execute(select(dead_attempts.c.attempt)).scalars()
        with pytest.raises(PotError):
            check_attempt(tx, attempt)
    catalog.close()


def test_replacing_a_table_that_is_dropped_meanwhile(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_table("t", SCHEMA, ROWS)

    def meanwhile(point: str) -> None:
        if point == "table.before_commit":
            monkeypatch.undo()
            soup.drop_table("t")
            soup.create_table("t", "other INT")

    monkeypatch.setattr("tureen.soup.tables.crash_point", meanwhile)
    with pytest.raises(UnknownTable, match="was dropped meanwhile"):
        soup.replace_table("t", [])
    assert soup.table("t").column_names == ["other"]


def test_new_contents_sync_their_directories(soup: tureen.Soup, monkeypatch: pytest.MonkeyPatch) -> None:
    soup.create_table("first", "a INT")
    synced: list[Path] = []
    monkeypatch.setattr("tureen.pot.files.sync_directory", synced.append)
    soup.create_table("second", "a INT")
    (folder,) = (path.parent for path in files(soup) if path.parent in synced)
    assert synced == [folder.parent, folder]
    soup.replace_table("second", [{"a": 1}])
    assert synced == [folder.parent, folder, folder]


def test_tables_in_a_pot_of_an_older_version(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with catalog.write() as tx:
        tx.execute_text(f"DROP TABLE {dimensions.name}")
    catalog.close()
    with tureen.open(tmp_path) as soup:
        assert soup.tables() == []
        soup.create_table("t", SCHEMA, ROWS)
        assert soup.table("t").to_pylist() == ROWS


@pytest.mark.parametrize("name", ["", " ", 5, "0123456789abcdef" * 2])
def test_names_are_checked(soup: tureen.Soup, name: Any) -> None:
    with pytest.raises(TureenError):
        soup.create_table(name, "a INT")
    with pytest.raises(InvalidSchema, match="must be a string or a Schema, got int"):
        soup.create_table("t", 5)  # type: ignore[arg-type]
    assert soup.tables() == []
