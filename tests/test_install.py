"""`pip install tureen` installs the client and the command line alone, and errors name the extra that is missing."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.running import RunningServer

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

Installed = Callable[..., subprocess.CompletedProcess[str]]

CLIENT = """
import importlib.util, sys
from datetime import UTC, datetime
from pathlib import Path
import pyarrow, tureen

extras = ("duckdb", "fastapi", "numba", "numpy", "pyspark", "sqlalchemy", "sqlglot", "uvicorn", "xxhash")
assert [name for name in extras if importlib.util.find_spec(name)] == []
Path("names.csv").write_text("n,name\\n1,first\\n")
with tureen.connect(*sys.argv[1:]) as soup:
    soup.create_stream("installed", "n INT, d DECIMAL(9, 2), ts TIMESTAMP", time="ts")
    query = soup.register("SELECT n, d, ts FROM installed WHERE n > 1")
    template = soup.register_many("SELECT n FROM installed WHERE n = :n", [{"n": 1}])
    template.add([{"n": 2}])
    since = query.invoke().position
    soup.push("installed", [{"n": 1, "ts": "2026-01-01T00:00:00Z"}, {"n": 2, "d": "1.50", "ts": datetime.now(UTC)}])
    soup.wait(soup.push("installed", pyarrow.table({"n": [3], "ts": [datetime.now(UTC)]})))
    assert [row["n"] for row in query.invoke()] == [2, 3]
    assert [str(change.row["d"]) for change in query.changes(since=since, timeout=0)] == ["1.50", "None"]
    soup.create_table("installed_a", "n INT, name STRING", "names.csv")
    soup.replace_table("installed_a", [{"n": 2, "name": "second"}])
    soup.sql("CREATE TABLE installed_b (n INT, name STRING) FROM 'names.csv'")
    assert [soup.table(f"installed_{letter}").to_pylist()[0]["name"] for letter in "ab"] == ["second", "first"]
    for name in ("installed_a", "installed_b"):
        soup.drop_table(name)
    soup.drop_stream("installed")
"""


def install_checkout(root: Path, environment: Path) -> None:
    """Install the wheel of this checkout and its base dependencies into an environment.

    With uv, if it has installed this environment and works, because it takes a fraction of pip's processor time.
    """
    uv, python = Path(sys.prefix, "bin", "uv"), str(environment / "bin" / "python")
    if uv.exists():
        command = [str(uv), "pip", "install", "--quiet", "--cache-dir", str(root / "cache"), "--python", python]
        if subprocess.run([*command, str(ROOT)], check=False).returncode == 0:
            return
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(root), str(ROOT)], check=True)
    wheel = next(root.glob("tureen-*.whl"))
    subprocess.run([*pip, "--python", python, "install", "--no-compile", str(wheel)], check=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Run programs of a virtual environment that has the wheel of this checkout and its base dependencies."""
    root = tmp_path_factory.mktemp("installed")
    environment, home = root / "venv", root / "home"
    home.mkdir()
    # Without pip, which takes seconds to install.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    install_checkout(root, environment)

    def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        # Not the environment of this process, whose PYTHONPATH may name the checkout.
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "200", **variables}
        command = [str(environment / "bin" / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=home, env=env, check=False)

    return run


def test_command_line_starts(installed: Installed) -> None:
    assert installed("tureen", "--help").returncode == 0
    assert installed("tureen", "--version").stdout == f"tureen {PROJECT['version']}\n"


def test_client_runs_without_extras(installed: Installed, served_pot: RunningServer) -> None:
    result = installed("python", "-c", CLIENT, served_pot.url, served_pot.tokens["admin"])
    assert (result.returncode, result.stderr) == (0, "")


def test_commands_run_without_extras(installed: Installed, served_pot: RunningServer) -> None:
    server = {"TUREEN_URL": served_pot.url, "TUREEN_TOKEN": served_pot.tokens["admin"]}
    for arguments, output in (
        (("sql", "-c", "CREATE STREAM installed (n INT)"), "done"),
        (("query", "register", "SELECT n FROM installed", "--name", "installed"), ""),
        (("sql", "-c", "REGISTER QUERY again AS SELECT n FROM installed;\n\\d\nDROP QUERY again"), "installed"),
        (("token", "list"), "principal"),
        (("query", "invoke", "installed", "-o", "json"), '"position"'),
        (("status",), "installed"),
        (("stream", "drop", "installed", "-y"), ""),
    ):
        result = installed("tureen", *arguments, **server)
        assert (result.returncode, output in result.stdout) == (0, True), result


ENGINE = 'needs the engine: pip install "tureen[engine]"\n'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serve",), 'tureen serve needs the server: pip install "tureen[server]"\n'),
        (("status", "--pot", "pot"), f"--pot {ENGINE}"),
        (("token", "list", "--pot", "pot"), f"--pot {ENGINE}"),
        (("verify", "--pot", "pot"), f"tureen verify {ENGINE}"),
        (("backup", "copy", "--pot", "pot"), f"tureen backup {ENGINE}"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_missing_extra_is_named_by_command(installed: Installed, arguments: tuple[str, ...], message: str) -> None:
    result = installed("tureen", *arguments)
    assert (result.returncode, result.stderr) == (1, f"error: {message}")


@pytest.mark.parametrize("call", ["open('pot')", "verify('pot')", "Soup"])
def test_missing_extra_is_named_by_module(installed: Installed, call: str) -> None:
    result = installed("python", "-c", f"import tureen; tureen.{call}")
    name = call.partition("(")[0]
    assert result.stderr.endswith(f"\ntureen.errors.MissingExtra: tureen.{name} {ENGINE}")


def test_version_is_the_newest_of_the_changelog() -> None:
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert PROJECT["version"] == versions[0]


def test_imported_packages_are_declared() -> None:
    extras = PROJECT["optional-dependencies"]
    base = {_module(requirement) for requirement in PROJECT["dependencies"]}
    server = base | {_module(requirement) for requirement in extras["engine"] + extras["server"]} | INDIRECT
    for path in sorted(ROOT.glob("tureen/**/*.py")):
        folder = path.relative_to(ROOT).parts[1]
        if folder != "testing":
            allowed = base if folder in ("cli", "client") else server
            # `tureen bench` imports the benchmarks of the source tree.
            assert _packages(path) - allowed - {"benchmarks"} - OPTIONAL == set(), path


OPTIONAL = {"polars"}
"""Packages that are imported where users have them."""

INDIRECT = {"llvmlite", "pydantic", "starlette"}
"""Dependencies of numba and FastAPI."""


def _module(requirement: str) -> str:
    name = re.split(r"[^\w-]", requirement, maxsplit=1)[0].replace("-", "_")
    return {"markdown_it_py": "markdown_it"}.get(name, name)


def _packages(path: Path) -> set[str]:
    """The third-party packages that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"tureen"}


def test_extras_include_each_other() -> None:
    extras = PROJECT["optional-dependencies"]
    assert "tureen[engine]" in extras["server"]
    assert "tureen[server]" in extras["all"]
    for name in ("dev", "bench"):
        assert "tureen[all]" in extras[name]
