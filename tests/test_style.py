"""Names: no fillers, and one meaning for each class and module name. `make style` prints all measurements."""

from pathlib import Path

import pytest

from scripts.style import (
    FOLDERS,
    FUNCTION_LINES,
    MODULE_LINES,
    SUITES,
    Module,
    mirrored,
    modules,
    repeated_classes,
    repeated_modules,
    too_long,
)

PRODUCT = "tureen"


@pytest.fixture(scope="module")
def product() -> list[Module]:
    """The modules of the product, which are parsed once."""
    return modules(PRODUCT)


def assert_no_fillers(sources: list[Module]) -> None:
    fillers = [f"{module.path}:{line}: {name}" for module in sources for line, name in module.fillers_to_rename()]
    assert not fillers, "\n".join(["Name the thing that the variable holds:", *fillers])


def test_no_filler_names_in_the_product(product: list[Module]) -> None:
    assert_no_fillers(product)


@pytest.mark.parametrize("folder", sorted({*FOLDERS, "pyspark_tureen", "scripts"} - {PRODUCT}))
def test_no_filler_names(folder: str) -> None:
    assert_no_fillers(modules(folder))


def test_class_names_have_one_meaning(product: list[Module]) -> None:
    assert repeated_classes(product) == {}


def test_module_names_have_one_meaning(product: list[Module]) -> None:
    assert repeated_modules(product) == {}


def test_fillers_outside_short_comprehensions_are_reported() -> None:
    module = Module(
        "tureen/example.py",
        "def pick(some, *, mine):\n"
        "    for found in some:\n"
        "        self.wanted = [\n"
        "            one\n"
        "            for one in rows\n"
        "        ]\n"
        "    return [one for one in rows], one, found.one\n",
    )
    assert module.fillers_to_rename() == [
        (1, "mine"),
        (1, "some"),
        (2, "found"),
        (2, "some"),
        (3, "wanted"),
        (4, "one"),
        (5, "one"),
        (7, "found"),
        (7, "one"),
    ]
    assert len(module.fillers()) == 11


def test_classes_with_the_same_name_are_reported() -> None:
    sources = [
        Module("tureen/pot/a.py", "class Run: ...\nclass Query: ...\nclass _Part: ..."),
        Module("tureen/results/b.py", "class Run: ...\nclass _Part: ..."),
        Module("tureen/service/c.py", "class Query: ..."),
    ]
    assert repeated_classes(sources) == {"Run": ["tureen/pot/a.py", "tureen/results/b.py"]}


def test_modules_with_the_same_name_are_reported() -> None:
    paths = ["pot/runs", "results/runs", "testing/grouped", "results/grouped", "pot/queries", "cli/queries"]
    sources = [Module(f"tureen/{path}.py", "") for path in paths]
    assert repeated_modules(sources) == {"runs": ["tureen/pot/runs.py", "tureen/results/runs.py"]}


def test_long_modules_and_functions_are_reported() -> None:
    body = "    pass\n"
    sources = [
        Module("tureen/long.py", "\n" * (MODULE_LINES + 1)),
        Module("tureen/short.py", "\n" * MODULE_LINES),
        Module("tureen/function.py", "def fits():\n" + body * (FUNCTION_LINES - 1)),
        Module("tests/function.py", "class Test:\n  async def run(self):\n" + body * FUNCTION_LINES),
    ]
    assert too_long(sources) == ["tureen/long.py: 401 lines", "tests/function.py: run, 71 lines"]


def test_a_test_mirrors_a_module_or_a_package() -> None:
    sources = ["tureen/arguments.py", "tureen/cli/shell/__init__.py", "benchmarks/soak.py", "tureen/pot/log.py"]
    assert mirrored("tests/test_arguments.py", sources)
    assert mirrored("tests/cli/test_shell.py", sources)
    assert mirrored("tests/benchmarks/test_soak.py", sources)
    assert not mirrored("tests/service/test_log.py", sources)
    assert not mirrored("tests/test_log.py", sources), "at the root, only the modules at the root are mirrored"


def test_suites_are_folders_of_tests() -> None:
    folders = {Path(module.path).parts[1] for module in modules("tests") if module.name.startswith("test_")}
    assert set(SUITES) <= folders
