"""The pages about the command line and the client say what is so, and what they show runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

import tureen
from tests.cli.conftest import Cli
from tests.service.running import Running
from tureen.cli.reference import reference, with_reference
from tureen.cli.shell.shell import HELP

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text()


def test_the_reference_is_that_of_the_program() -> None:
    assert with_reference(PAGE) == PAGE, "run `make reference`"


def test_every_command_of_the_interface_is_there() -> None:
    named = re.findall(r"^### (.*)$", reference(), re.MULTILINE)
    groups = {
        "stream": "create list drop",
        "query": "register list invoke explain share drop follow",
        "template": "register list show add remove share drop follow",
        "token": "create list revoke",
    }
    wanted = [f"tureen {group} {one}" for group, some in groups.items() for one in some.split()]
    wanted += [f"tureen {one}" for one in ("serve", "demo", "sql", "push", "status", "bench")]
    assert set(wanted) <= set(named)


def test_every_command_of_the_shell_is_there() -> None:
    for word in re.findall(r"^  (\\\S+)", HELP, re.MULTILINE):
        assert f"`{word}" in PAGE, word


def test_the_first_steps_of_the_page(cli: Cli, served_pot: Running) -> None:
    block = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines() if "tureen " in line]
    assert len(lines) == 6
    outputs = []
    for line in lines:
        said, piped, command = line.rpartition(" | ")
        words = shlex.split(command)[1:]
        if words[-1] == "sql":
            words += ["-c", "SHOW STREAMS"]
        if "follow" in words:
            words += ["--timeout", "0"]
        stdin = subprocess.run(["sh", "-c", said], capture_output=True, text=True, check=True).stdout if piped else ""
        done = cli(*words, stdin=stdin)
        assert done.code == 0, done.err
        outputs.append(done.out)
    assert "IBM" in outputs[3], "the row is within the window of the query"
    assert "IBM" in outputs[4], "it is followed from the beginning"
    assert "trades" in outputs[-1]
    served_pot.soup.drop_stream("trades")


def test_the_code_of_the_client(served_pot: Running, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "client.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        code = block.replace("http://127.0.0.1:7707", served_pot.url).replace("tureen_…", served_pot.tokens["admin"])
        exec(compile(code.replace("soup.close()", ""), "client.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["[{'sym': 'IBM', 'price': 120.5}]", "{'sym': 'IBM', 'price': 120.5}"]
    assert lines[-2] == "unknown_column Location(line=1, column=8) did you mean 'price'?"
    assert lines[-1] == "r-3 {'least': 120.0, 'sym': 'ACME', 'price': 121.5}"
    soup = names["soup"]
    assert isinstance(soup, tureen.Client)
    soup.drop_stream("trades")
    soup.close()
