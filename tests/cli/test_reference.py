"""The reference of the commands in docs/cli.md is complete."""

from __future__ import annotations

import re
from pathlib import Path

from tureen.cli.reference import reference, with_reference
from tureen.cli.shell.shell import HELP

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_reference_is_up_to_date() -> None:
    assert with_reference(PAGE) == PAGE, "run `make reference`"


def test_every_command_exists() -> None:
    headings = re.findall(r"^### (.*)$", reference(), re.MULTILINE)
    groups = {
        "stream": "create list drop",
        "query": "register list invoke explain why share drop follow",
        "template": "register list show add remove share drop follow",
        "token": "create list revoke",
    }
    expected = [f"tureen {group} {command}" for group, commands in groups.items() for command in commands.split()]
    expected += [f"tureen {command}" for command in ("serve", "demo", "sql", "push", "status", "bench")]
    assert set(expected) <= set(headings)


def test_every_shell_command_is_documented() -> None:
    for word in re.findall(r"^  (\\\S+)", HELP, re.MULTILINE):
        assert f"`{word}" in PAGE, word
