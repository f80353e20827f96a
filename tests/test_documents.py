"""The documents are consistent with the code: referenced files and functions exist, and everything is documented."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from scripts.decisions import ARCHITECTURE, rows, with_decisions
from tureen import errors

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULES = sorted([*ROOT.glob("tureen/**/*.py"), *ROOT.glob("pyspark_tureen/**/*.py")])
FOLDERS = sorted(path for path in ROOT.glob("tureen/**/__init__.py") if path.parent.name != "tureen")
LIVES = [ROOT / "docs" / "life-of-a-tuple.md", ROOT / "docs" / "life-of-a-query.md"]
ERRORS = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, errors.TureenError)]

_PATH = re.compile(
    r"(?<![\w/])(?:tureen|pyspark_tureen|tests|benchmarks|docs|scripts)/(?:[\w.-]+/)*(?:[\w-]+\.(?:py|md))?"
)
_LISTED = re.compile(r"`(\w+\.py|\w+/)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CALL = re.compile(r"`((?:\w+\.)*\w+)\(\)`")
_CONSTANT = re.compile(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| `([\w/]+\.py)` \|", re.MULTILINE)
_TERM = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
_BRANCH = re.compile(r"^([│ ]*)[├└]── (\w+)", re.MULTILINE)


def relative_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def defined() -> set[tuple[str, str]]:
    """All pairs (owner, name): functions and classes by module name, and methods by class name."""
    names = set()
    for path in MODULES:
        for node in syntax_tree(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add((path.stem, node.name))
            if isinstance(node, ast.ClassDef):
                names |= {(node.name, method.name) for method in node.body if isinstance(method, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_name)
def test_referenced_files_exist(path: Path) -> None:
    assert [named for named in _PATH.findall(path.read_text()) if not (ROOT / named).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_name)
def test_link_targets_exist(path: Path) -> None:
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
        relative_name(path)
        for path in DOCUMENTS
        if path.name != "README.md" and path not in linked | {ROOT / "ARCHITECTURE.md"}
    ] == []


def test_the_table_of_decisions_is_up_to_date() -> None:
    page = ARCHITECTURE.read_text()
    assert with_decisions(page) == page, "run `make reference`"
    assert rows() in page


def test_the_glossary_is_in_alphabetical_order() -> None:
    terms = [term.lower() for term in _TERM.findall((ROOT / "docs" / "glossary.md").read_text())]
    assert len(terms) > 80
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("path", LIVES, ids=relative_name)
def test_functions_in_the_lives_exist(path: Path) -> None:
    definitions = defined()
    names = {name for _, name in definitions}
    calls = _CALL.findall(path.read_text())
    assert len(calls) > 20
    missing = []
    for call in calls:
        *owners, name = call.split(".")
        if not ((owners[-1], name) in definitions if owners else name in names):
            missing.append(call)
    assert missing == []


def test_settings_are_defined_where_documented() -> None:
    settings = _CONSTANT.findall((ROOT / "docs" / "operating.md").read_text())
    assert len(settings) > 10
    for constants, module in settings:
        for constant in re.findall(r"\w+", constants):
            assert re.search(rf"^{constant} = ", (ROOT / module).read_text(), re.MULTILINE), constant


@pytest.mark.parametrize("path", MODULES, ids=relative_name)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(syntax_tree(path))


@pytest.mark.parametrize("path", FOLDERS, ids=relative_name)
def test_every_folder_documents_its_interface(path: Path) -> None:
    docstring = ast.get_docstring(syntax_tree(path)) or ""
    assert [word for word in ("Takes", "Holds", "Gives", "Does not know") if word not in docstring] == []


@pytest.mark.parametrize("path", FOLDERS, ids=relative_name)
def test_every_folder_lists_its_files(path: Path) -> None:
    docstring = ast.get_docstring(syntax_tree(path)) or ""
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


def test_the_documented_tree_of_errors_is_correct() -> None:
    drawn: dict[str, str] = {}
    line = ["TureenError"]
    for indent, name in _BRANCH.findall(errors.__doc__ or ""):
        depth = len(indent) // 4 + 1
        line[depth:] = [name]
        drawn[name] = line[depth - 1]
    assert drawn == {
        error.__name__: error.__base__.__name__
        for error in ERRORS
        if error is not errors.TureenError and error.__base__
    }
