"""The catalog, the lease, positions, and the sweeper."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from tureen.errors import PotError, PotLocked, PotVersion, StorageFailed
from tureen.pot.bulk_statements import BulkStatement
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.catalog_tables import garbage, meta
from tureen.pot.files import durable_file, new_attempt
from tureen.pot.lease import Lease
from tureen.pot.sweep import sweep


def test_a_pot_of_another_version_is_rejected(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with catalog.write() as tx:
        tx.execute(update(meta).where(meta.c.key == "format").values(value="999"))
    catalog.close()
    with pytest.raises(PotVersion, match="format version 999"):
        Catalog(tmp_path)


def test_an_invalid_catalog_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(b"this is not a database" * 100)
    with pytest.raises(PotError, match="cannot be read"):
        Catalog(tmp_path)


@pytest.mark.parametrize("name", ["a?b", "a%20b", "a b", "ä#"])
def test_paths_with_special_characters(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    Catalog(tmp_path / name, create=True).close()
    assert Catalog(tmp_path / name).seq() == 0
    assert (tmp_path / name / "catalog.sqlite").exists()


def test_a_failed_transaction_is_rolled_back(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with pytest.raises(RuntimeError), catalog.write() as tx:
        take_seq(tx)
        raise RuntimeError
    assert catalog.seq() == 0


def test_the_token_changes_on_every_commit(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    token = catalog.token()
    assert catalog.token() == token
    with catalog.write() as tx:
        take_seq(tx)
    assert catalog.token() != token


def test_the_token_changes_on_commits_without_notification(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    token = catalog.token()
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite")) as raw, raw:
        raw.execute("UPDATE counter SET seq = seq + 1")
    deadline = time.monotonic() + 100
    while catalog.token() == token:
        assert time.monotonic() < deadline, "SQLite was not queried"


def test_commits_survive_a_kill_in_wal_mode(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from tureen.pot.catalog import Catalog, take_seq\n"
        "catalog = Catalog(Path(sys.argv[1]), create=True)\n"
        "with catalog.write() as tx: take_seq(tx)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert Catalog(tmp_path).seq() == 1
    with sqlite3.connect(tmp_path / "catalog.sqlite") as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_sqlite_errors_are_storage_errors(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with pytest.raises(StorageFailed, match="could not be written"), catalog.write() as tx:
        BulkStatement("SELECT * FROM nowhere WHERE (0) IN (VALUES {rows})", width=1).run(tx, [(1,)])
    with catalog.write() as tx:
        take_seq(tx)
    assert catalog.seq() == 1


def test_a_full_catalog_is_a_storage_error(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with pytest.raises(StorageFailed, match="could not be written"), catalog.write() as tx:
        pages = tx.execute_text("PRAGMA page_count").scalar_one()
        tx.execute_text(f"PRAGMA max_page_count={pages}")
        for number in range(1000):
            tx.execute(insert(garbage).values(path=f"{number}" + "x" * 1000, since=0))


def test_the_lease_is_exclusive_and_released_by_a_kill(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tureen.pot.lease import Lease\n"
        "lease = Lease(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(PotLocked, match=f"process {holder.pid}"):
            Lease(tmp_path)
        holder.kill()
        holder.wait()
    Lease(tmp_path).release()


def test_the_sweeper_marks_an_attempt_dead_before_removing_its_files(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    attempt = new_attempt()
    path = tmp_path / "streams" / "1" / f"{attempt}-0.run"
    with durable_file(path) as file:
        file.write(b"rows")
    assert sweep(catalog) == 0
    assert path.exists()
    assert sweep(catalog, abandoned_after=-1) == 1
    assert not path.exists()
    with catalog.read() as tx, pytest.raises(PotError, match="was abandoned"):
        check_attempt(tx, attempt)


def test_replaced_files_are_removed_after_a_grace(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    path = tmp_path / "streams" / "1" / "a-0.run"
    with durable_file(path) as file:
        file.write(b"rows")
    with catalog.write() as tx:
        tx.execute(insert(garbage).values(path="streams/1/a-0.run", since=0))
        tx.execute(update(garbage).values(since=10**18))
    assert sweep(catalog) == 0
    with catalog.write() as tx:
        tx.execute(update(garbage).values(since=0))
    assert sweep(catalog) == 1
    assert not path.exists()
    with catalog.read() as tx:
        assert tx.execute(select(garbage)).first() is None


def test_files_are_never_overwritten(tmp_path: Path) -> None:
    with durable_file(tmp_path / "a") as file:
        file.write(b"first")
    with pytest.raises(StorageFailed), durable_file(tmp_path / "a") as file:
        file.write(b"second")
    assert (tmp_path / "a").read_bytes() == b"first"


def test_a_failed_write_is_a_storage_error(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not os.access(full, os.W_OK):
        pytest.skip("this system has no /dev/full")
    (tmp_path / "full").symlink_to(full)
    with pytest.raises(StorageFailed), durable_file(tmp_path / "full") as file:
        file.write(b"x")


def test_a_partial_file_is_removed(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="could not write 'half'"), durable_file(tmp_path / "half") as file:
        file.write(b"x")
        raise OSError(28, "No space left on device")
    assert not (tmp_path / "half").exists()
