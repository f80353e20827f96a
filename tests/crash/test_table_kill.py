"""SIGKILL at every point of a table's commit: the content is entirely the old or the new one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.crash.processes import run_until_killed
from tureen.errors import UnknownTable
from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.soup.tables import Dimensions

ROWS = 1000
CRASH_POINTS = ["table.before_write", "table.before_commit", "table.in_commit", "table.after_commit"]


def change(root: Path, call: str) -> None:
    """Create or replace a table."""
    tables = Dimensions(Catalog(root))
    rows = pa.table({"n": pa.array([2] * ROWS, pa.int32())})
    if call == "create":
        tables.create("t", "n INT", rows)
    else:
        tables.replace("t", rows)


def content(catalog: Catalog) -> list[int] | None:
    try:
        return list(Dimensions(catalog).read("t").column("n").to_pylist())
    except UnknownTable:
        return None


@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize("call", ["create", "replace"])
def test_kill_during_commit(tmp_path: Path, crash_dir: Path, call: str, point: str) -> None:
    catalog = Catalog(tmp_path, create=True)
    rows = pa.table({"n": pa.array([1] * ROWS, pa.int32())})
    if call == "replace":
        Dimensions(catalog).create("t", "n INT", rows)
    before = content(catalog)
    (crash_dir / point).touch()
    run_until_killed(change, tmp_path, call)
    expected = [2] * ROWS if point == "table.after_commit" else before
    assert content(catalog) == expected
    sweep(catalog, abandoned_after=-1, grace=-1)
    assert content(catalog) == expected
    files = [path for path in (tmp_path / "tables").rglob("*") if path.is_file()]
    assert len(files) == (expected is not None)
    if expected is None:
        Dimensions(catalog).create("t", "n INT", None)
    Dimensions(catalog).replace("t", rows)
    assert content(catalog) == [1] * ROWS
    catalog.close()
