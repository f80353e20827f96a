"""`open` and `connect` return objects with the methods of `AnySoup`, and few others, all of them documented."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tureen

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()

DIFFERENCES = {tureen.Soup: {"acting_for", "path", "settle", "start"}, tureen.Client: {"url"}}
"""The public names that only one of the two has."""


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


METHODS = sorted(public(tureen.AnySoup))


def test_public_names_are_those_of_the_interface(tmp_path: Path) -> None:
    with tureen.open(tmp_path / "pot") as soup, tureen.connect("http://127.0.0.1:9") as client:
        for opened in (soup, client):
            assert public(opened) == {*METHODS, *DIFFERENCES[type(opened)]}


def test_all_public_names_are_documented() -> None:
    section = re.search(r"## Methods\n(.*?)\n## ", PAGE, re.DOTALL)
    assert section is not None
    rows = [line.split("|")[2] for line in section[1].splitlines() if line.startswith("|")][2:]
    documented = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(documented) == METHODS
    for name in DIFFERENCES[tureen.Soup] | DIFFERENCES[tureen.Client]:
        assert re.search(rf"^\| .*`{name}`.* \| (not )?available \| (not )?available \|$", PAGE, re.MULTILINE), name


OWN_DOCSTRINGS = {"close"}
"""The methods that say what they do to the engine, or to the connection."""


@pytest.mark.parametrize("kind", DIFFERENCES)
@pytest.mark.parametrize("name", METHODS)
def test_methods_are_implemented_and_documented(kind: type, name: str) -> None:
    declared, implemented = getattr(tureen.AnySoup, name), getattr(kind, name)
    assert implemented is not declared
    assert parameters(implemented) == parameters(declared)
    # As Tab and help() show it: inherited, so that arguments are documented in one place.
    assert inspect.getdoc(implemented) == inspect.getdoc(declared) or name in OWN_DOCSTRINGS


def parameters(called: Callable[..., Any]) -> list[tuple[str, object, object]]:
    declared = inspect.signature(called).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in declared]
