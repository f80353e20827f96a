"""SIGKILL at every point of a change of a template's rows: all rows of the change are there, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tests.soup.template_pot import TemplatePot, make_row, numbered_rows
from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker
from tureen.soup.templates import Templates


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[TemplatePot]:
    """A pot with a stream."""
    pot = TemplatePot(tmp_path)
    yield pot
    pot.engine.close()


def change(root: Path, handle: str, action: str) -> None:
    """Add or remove rows of a template."""
    catalog = Catalog(root)
    templates = Templates(catalog, Invoker(catalog))
    if action == "add":
        templates.add(handle, [{"n": number} for number in range(50)])
    else:
        templates.remove(handle, range(10, 2000), None)


@pytest.mark.parametrize("action", ["add", "remove"])
@pytest.mark.parametrize("point", ["before_write", "before_commit", "in_commit", "after_commit"])
def test_kill_during_a_change(pot: TemplatePot, crash_dir: Path, point: str, action: str) -> None:
    root = pot.engine.catalog.root
    handle = pot.templates.register("SELECT * FROM s WHERE qty > :n", [{"n": n} for n in range(2000)], None)
    pot.templates.add(handle, [{"n": 5}] * 20)
    (crash_dir / f"template.{point}").touch()
    run_until_killed(change, root, handle, action)
    catalog = Catalog(root)
    sweep(catalog, abandoned_after=-1, grace=-1)
    catalog.close()
    members = pot.templates.members(handle)
    after = 2070 if action == "add" else 30
    assert len(members) == (after if point == "after_commit" else 2020)
    assert sum(path.is_file() for path in (root / "templates").rglob("*")) == len(members.parts)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, qty=1)])
    expected = 2 if point == "after_commit" and action == "add" else 1
    assert len(numbered_rows(pot.matches(handle, since))) == expected
