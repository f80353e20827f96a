"""SIGKILL while a function is created or replaced: there is the old one or the new one, and both can be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tureen.functions.function_source import function_of
from tureen.pot.catalog import Catalog
from tureen.pot.functions import find_function
from tureen.pot.registered import LOCAL
from tureen.soup.functions import Functions

OLD = function_of("text_size", "builtins:len", "INT", "STRING")
NEW = function_of("text_size", "builtins:ord", "INT", "STRING")


def replace_function(root: Path) -> None:
    """Replace the function of a pot."""
    Functions(Catalog(root)).create(NEW, LOCAL, replace=True)


@pytest.mark.parametrize("point", ["function.before_commit", "function.in_commit", "function.after_commit"])
def test_kill_while_a_function_is_replaced(tmp_path: Path, crash_dir: Path, point: str) -> None:
    root = tmp_path / "pot"
    root.mkdir()
    catalog = Catalog(root, create=True)
    Functions(catalog).create(OLD, LOCAL)
    catalog.close()
    (crash_dir / point).touch()
    run_until_killed(replace_function, root)
    catalog = Catalog(root)
    with catalog.read() as tx:
        assert find_function(tx, "text_size") == (NEW if point == "function.after_commit" else OLD)
    Functions(catalog).create(NEW, LOCAL, replace=True)
    with catalog.read() as tx:
        assert find_function(tx, "text_size") == NEW
    catalog.close()
