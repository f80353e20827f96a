"""A pot is private to its owner, regardless of the umask; and names are normalized to composed Unicode."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import tureen
from tests.disk import modes
from tureen.errors import DuplicateName
from tureen.pot.catalog import Catalog
from tureen.pot.inbox import Inbox
from tureen.pot.lease import Lease
from tureen.pot.streams import find_stream
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import ManualEngine

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask that allows everybody to read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_files_and_directories_are_private(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", "a INT")
    engine.register("SELECT a FROM s WHERE a > 1", materialize=True)
    engine.compile()
    engine.push("s", [{"a": n} for n in range(100)])
    engine.seal(everything=True)
    templates = Templates(engine.catalog, engine.invoker)
    templates.add(templates.register("SELECT a FROM s WHERE a = :n", [{"n": 1}], None), [{"n": 2}])
    lease, inbox = Lease(tmp_path), Inbox(tmp_path, engine.catalog)
    engine.close()
    inbox.close()
    lease.release()
    mode_by_path = modes(tmp_path)
    assert len(mode_by_path) > 10
    assert {path: mode for path, mode in mode_by_path.items() if mode & 0o077} == {}


@pytest.mark.usefixtures("open_umask")
def test_a_new_pot_is_private(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "folder" / "pot") as soup:
        soup.create_table("t", "a INT", [{"a": 1}])
    assert (tmp_path / "folder" / "pot").stat().st_mode & 0o777 == 0o700
    assert {path: mode for path, mode in modes(tmp_path / "folder" / "pot").items() if mode & 0o077} == {}


def test_composed_and_decomposed_names_are_equal(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path)
    engine.create_stream(DECOMPOSED, f"`{DECOMPOSED}` INT")
    with engine.catalog.read() as tx:
        assert find_stream(tx, COMPOSED.upper()).name
    with pytest.raises(DuplicateName):
        engine.create_stream(COMPOSED, "a INT")
    engine.push(COMPOSED, [{COMPOSED: 7}])
    handle = engine.register(f"SELECT `{COMPOSED}` AS n FROM `{COMPOSED}` WHERE `{DECOMPOSED}` > 1", name=DECOMPOSED)
    assert engine.invoke(COMPOSED).table.to_pylist() == engine.invoke(handle).table.to_pylist() == [{"n": 7}]
    engine.close()


def test_names_are_stored_composed(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "pot") as soup:
        soup.create_table(DECOMPOSED, "a INT", [{"a": 1}])
        assert [info["name"] for info in soup.tables()] == [COMPOSED]
        assert soup.table(DECOMPOSED).num_rows == soup.table(COMPOSED).num_rows == 1
        with pytest.raises(DuplicateName):
            soup.create_table(COMPOSED, "a INT")


def test_the_package_has_a_version_and_types() -> None:
    assert tureen.__version__.count(".") == 2
    assert (Path(tureen.__file__).parent / "py.typed").exists()
    assert "__version__" in tureen.__all__


def test_an_existing_catalog_preserves_its_mode(tmp_path: Path) -> None:
    Catalog(tmp_path, create=True).close()
    (tmp_path / "catalog.sqlite").chmod(0o640)
    Catalog(tmp_path, create=True).close()
    assert (tmp_path / "catalog.sqlite").stat().st_mode & 0o777 == 0o640
