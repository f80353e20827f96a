"""The documents are true as far as a program can tell: what they name exists, and what must be said is said."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tureen import errors

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULES = sorted([*ROOT.glob("tureen/**/*.py"), *ROOT.glob("pyspark_tureen/**/*.py")])
FOLDERS = sorted(path for path in ROOT.glob("tureen/**/__init__.py") if path.parent.name != "tureen")
LIVES = [ROOT / "docs" / "life-of-a-tuple.md", ROOT / "docs" / "life-of-a-query.md"]
ERRORS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.TureenError)]

_PATH = re.compile(
    r"(?<![\w/])(?:tureen|pyspark_tureen|tests|benchmarks|docs|scripts)/(?:[\w.-]+/)*(?:[\w-]+\.(?:py|md))?"
)
_LISTED = re.compile(r"`(\w+\.py|\w+/)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CALL = re.compile(r"`((?:\w+\.)*\w+)\(\)`")
_CONSTANT = re.compile(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| `([\w/]+\.py)` \|", re.MULTILINE)
_BRANCH = re.compile(r"^([│ ]*)[├└]── (\w+)", re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def defined() -> set[tuple[str, str]]:
    """All (owner, name): the functions and classes of each module, by its stem, and the methods of each class."""
    found = set()
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add((path.stem, node.name))
            if isinstance(node, ast.ClassDef):
                found |= {(node.name, one.name) for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_named_files_exist(path: Path) -> None:
    assert [named for named in _PATH.findall(path.read_text()) if not (ROOT / named).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    targets = [target.partition("#")[0] for target in _LINK.findall(path.read_text()) if "://" not in target]
    assert [target for target in targets if target and not (path.parent / target).exists()] == []


def test_every_page_is_linked_from_another() -> None:
    linked = {
        (path.parent / target.partition("#")[0]).resolve()
        for path in DOCUMENTS
        for target in _LINK.findall(path.read_text())
        if "://" not in target
    }
    assert [
        name_of(path)
        for path in DOCUMENTS
        if path.name != "README.md" and path not in linked | {ROOT / "ARCHITECTURE.md"}
    ] == []


@pytest.mark.parametrize("path", LIVES, ids=name_of)
def test_functions_on_the_way_exist(path: Path) -> None:
    known = defined()
    names = {name for _, name in known}
    calls = _CALL.findall(path.read_text())
    assert len(calls) > 20
    missing = []
    for call in calls:
        *owners, name = call.split(".")
        if not ((owners[-1], name) in known if owners else name in names):
            missing.append(call)
    assert missing == []


def test_settings_are_where_the_page_says() -> None:
    found = _CONSTANT.findall((ROOT / "docs" / "operating.md").read_text())
    assert len(found) > 10
    for constants, module in found:
        for constant in re.findall(r"\w+", constants):
            assert re.search(rf"^{constant} = ", (ROOT / module).read_text(), re.MULTILINE), constant


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


@pytest.mark.parametrize("path", FOLDERS, ids=name_of)
def test_every_folder_says_what_it_takes_and_gives(path: Path) -> None:
    said = ast.get_docstring(tree_of(path)) or ""
    assert [word for word in ("Takes", "Holds", "Gives", "Does not know") if word not in said] == []


@pytest.mark.parametrize("path", FOLDERS, ids=name_of)
def test_every_folder_lists_its_files(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path)) or ""
    files = {file.name for file in path.parent.glob("*.py")} - {"__init__.py", "__main__.py"}
    folders = {f"{folder.parent.name}/" for folder in path.parent.glob("*/__init__.py")}
    assert set(_LISTED.findall(docstring)) - {f"{path.parent.name}/"} == files | folders


def test_every_folder_is_on_the_map() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    folders = [f"tureen/{path.parent.name}/" for path in FOLDERS if path.parent.parent.name == "tureen"]
    modules = [path for path in MODULES if path.parent.name == "tureen" and path.name != "__init__.py"]
    entries = [*folders, *(f"tureen/{path.name}" for path in modules)]
    assert [entry for entry in entries if f"`{entry}`" not in architecture] == []
    assert len(re.findall(r"^\| `tureen/", architecture, re.MULTILINE)) <= 20


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    drawn: dict[str, str] = {}
    line = ["TureenError"]
    for indent, name in _BRANCH.findall(errors.__doc__ or ""):
        depth = len(indent) // 4 + 1
        line[depth:] = [name]
        drawn[name] = line[depth - 1]
    assert drawn == {
        one.__name__: one.__base__.__name__ for one in ERRORS if one is not errors.TureenError and one.__base__
    }
