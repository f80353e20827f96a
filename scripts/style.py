"""Measures the style of this repository: sizes, docstrings, names, and tests that mirror a module.

`make style` prints the table and, below it, the names that are used more than once and what is too long.
`tests/test_style.py` keeps the rules that hold everywhere.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
FOLDERS = ("tureen", "tests", "benchmarks")

FILLERS = frozenset({"one", "found", "some", "wanted", "mine"})
"""Names that say nothing about the value they hold."""

MODULE_LINES = 400
"""A module with more lines wants to be divided by concept."""

FUNCTION_LINES = 70
"""A function with more lines wants names for its parts."""

PRODUCT_NOUNS = frozenset(
    {
        "functions",
        "integrity",
        "network",
        "peers",
        "queries",
        "reference",
        "statements",
        "streams",
        "tables",
        "templates",
        "tokens",
    }
)
"""Modules that handle the same object at different layers, such as `pot`, `service.routes` and `cli`."""

PRODUCT_CLASSES = frozenset({"Place", "Pushed", "Query", "Rejected", "Stream", "Template", "Token", "Window"})
"""Classes that have a JSON form of the same name in `SERVICE`."""

SERVICE = "tureen/service/"

SUITES = ("behaviour", "cases", "cluster", "consistency", "crash", "damage", "flights", "oracle")
"""Folders of `tests/` whose tests run the product from end to end: they belong to no single module."""

TWINS = "tureen/testing/"
"""Its modules are plain twins of other modules, under the same name."""

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTIONS)


@dataclass(frozen=True)
class Module:
    """A Python file and its syntax tree."""

    path: str
    """Relative to the root of the repository."""
    text: str

    @property
    def name(self) -> str:
        """The module's own name, without its packages."""
        return Path(self.path).stem

    @property
    def lines(self) -> int:
        """Number of lines, blank lines and comments included."""
        return len(self.text.splitlines())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions and methods."""
        return (node for node in self.nodes if isinstance(node, _FUNCTIONS))

    def classes(self) -> Iterator[ast.ClassDef]:
        """All classes."""
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    def names(self) -> Iterator[tuple[str, ast.AST]]:
        """Every use of a variable or an argument, and every assignment to an attribute, with its node."""
        for node in self.nodes:
            match node:
                case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name, node

    def fillers(self) -> list[str]:
        """Every use of a filler name."""
        return [name for name, _ in self.names() if name in FILLERS]

    def fillers_to_rename(self) -> list[tuple[int, str]]:
        """The lines and names of all fillers but the variables of comprehensions that fit on a line."""
        allowed = {id(name) for node in self.nodes for name in _short_comprehension_variables(node)}
        return sorted(
            (getattr(node, "lineno", 0), name)
            for name, node in self.names()
            if name in FILLERS and id(node) not in allowed
        )


def _short_comprehension_variables(node: ast.AST) -> Iterator[ast.Name]:
    """The uses of a comprehension's own variables, if it fits on a line."""
    if isinstance(node, _COMPREHENSIONS) and node.lineno == node.end_lineno:
        targets = [target for generator in node.generators for target in ast.walk(generator.target)]
        variables = {target.id for target in targets if isinstance(target, ast.Name)}
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and name.id in variables:
                yield name


def modules(folder: str) -> list[Module]:
    """The modules below a folder of the repository, sorted by path."""
    return [
        Module(path.relative_to(ROOT).as_posix(), path.read_text()) for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def mirrored(test: str, sources: Collection[str]) -> bool:
    """Whether a test module has the name of a module or package in the folder that it tests, or below that folder.

    >>> mirrored("tests/language/test_grouping.py", ["tureen/language/binding/grouping.py"])
    True
    >>> mirrored("tests/language/test_sessions.py", ["tureen/service/sessions.py"])
    False
    """
    path = Path(test)
    folder = path.parent.relative_to("tests").as_posix()
    name = path.stem.removeprefix("test_")
    if folder == ".":
        return f"tureen/{name}.py" in sources
    ends = (f"/{name}.py", f"/{name}/__init__.py")
    return any(source.startswith((f"tureen/{folder}/", f"{folder}/")) and source.endswith(ends) for source in sources)


def in_suite(test: str) -> bool:
    """Whether a test module is in a folder of end-to-end tests.

    >>> in_suite("tests/crash/test_kill.py"), in_suite("tests/pot/test_log.py")
    (True, False)
    """
    return Path(test).parts[1] in SUITES


def repeated_classes(sources: Iterable[Module]) -> dict[str, list[str]]:
    """Public class names that are defined in more than one module, with those modules."""
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for module in sources:
        for definition in module.classes():
            json_form = definition.name in PRODUCT_CLASSES and module.path.startswith(SERVICE)
            if _public(definition) and not json_form:
                paths[definition.name].add(module.path)
    return _repeated(paths)


def repeated_modules(sources: Iterable[Module]) -> dict[str, list[str]]:
    """Module names that occur more than once, except for product nouns and plain twins."""
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for module in sources:
        if module.name not in PRODUCT_NOUNS | {"__init__"} and not module.path.startswith(TWINS):
            paths[module.name].add(module.path)
    return _repeated(paths)


def too_long(sources: Iterable[Module]) -> list[str]:
    """The modules and functions with more lines than they should have."""
    lines = []
    for module in sources:
        if module.lines > MODULE_LINES:
            lines.append(f"{module.path}: {module.lines} lines")
        lines += [
            f"{module.path}: {function.name}, {size} lines"
            for function in module.functions()
            if (size := _size(function)) > FUNCTION_LINES
        ]
    return lines


def _size(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _repeated(paths: dict[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(paths[name]) for name in sorted(paths) if len(paths[name]) > 1}


def _spread(sizes: Iterable[int]) -> str:
    ordered = sorted(sizes)
    if not ordered:
        return "–"
    return f"{median(ordered):.0f} / {ordered[(len(ordered) - 1) * 9 // 10]} / {ordered[-1]}"


def _public(node: ast.AST) -> bool:
    return not getattr(node, "name", "").startswith("_")


def _documented(nodes: Iterable[ast.AST]) -> str:
    documented = [
        ast.get_docstring(node) is not None for node in nodes if isinstance(node, _DOCUMENTED) and _public(node)
    ]
    return f"{100 * sum(documented) / len(documented):.0f}" if documented else "–"


def _docstrings(sources: list[Module]) -> str:
    nodes = [node for module in sources for node in module.nodes]
    kinds: tuple[tuple[type[ast.AST], ...], ...] = ((ast.Module,), (ast.ClassDef,), _FUNCTIONS)
    return " / ".join(_documented(node for node in nodes if isinstance(node, kind)) for kind in kinds)


def _fillers(sources: list[Module]) -> str:
    fillers = sum(len(module.fillers()) for module in sources)
    return f"{fillers:,} of {sum(1 for module in sources for _ in module.names()):,}"


def _function_sizes(sources: list[Module]) -> Iterator[int]:
    return (_size(function) for module in sources for function in module.functions())


MEASURES: tuple[tuple[str, Callable[[list[Module]], str]], ...] = (
    ("files", lambda sources: f"{len(sources):,}"),
    ("lines", lambda sources: f"{sum(module.lines for module in sources):,}"),
    ("file: median / p90 / max lines", lambda sources: _spread(module.lines for module in sources)),
    ("function: median / p90 / max lines", lambda sources: _spread(_function_sizes(sources))),
    ("docstrings: module / public class / function %", _docstrings),
    (f"names {', '.join(sorted(FILLERS))}", _fillers),
)


def table(folders: dict[str, list[Module]]) -> list[list[str]]:
    """The measurements, a row per measure and a column per folder."""
    sources = [module.path for folder in folders if folder != "tests" for module in folders[folder]]
    tests = [
        module.path for module in folders["tests"] if module.name.startswith("test_") and not in_suite(module.path)
    ]
    mirrors = f"{sum(mirrored(test, sources) for test in tests)} of {len(tests)}"
    return [
        ["", *folders],
        *([title, *map(measure, folders.values())] for title, measure in MEASURES),
        ["tests that mirror a module, without SUITES", *(mirrors if folder == "tests" else "" for folder in folders)],
    ]


def main() -> None:
    """Prints the table, then the names that are used more than once in the package, and what is too long."""
    folders = {folder: modules(folder) for folder in FOLDERS}
    rows = table(folders)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for title, repeated in (
        ("classes", repeated_classes(folders["tureen"])),
        ("modules", repeated_modules(folders["tureen"])),
    ):
        print(f"\n{title} with the same name: {len(repeated)}")
        for name, paths in repeated.items():
            print(f"  {name}: {', '.join(paths)}")
    long = too_long(module for sources in folders.values() for module in sources)
    print(f"\nmodules over {MODULE_LINES} and functions over {FUNCTION_LINES} lines: {len(long)}")
    for line in long:
        print(f"  {line}")


if __name__ == "__main__":
    main()
