"""The reference of the command line, made from the program: every command, argument and option.

`python -m tureen.cli.reference docs/cli.md` writes it into that page, after the line `MARK`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer.main

from tureen.cli.main import app

MARK = "<!-- Written by `make reference`; what comes after this line is the program's own. -->"


def reference() -> str:
    """All commands as Markdown."""
    return "\n".join(_command(typer.main.get_command(app), "tureen"))


def with_reference(page: str) -> str:
    """A page with the reference after its mark."""
    before, mark, _ = page.partition(MARK)
    return f"{before}{mark or MARK}\n\n{reference()}"


def _command(command: Any, name: str) -> Iterator[str]:
    """One command and those below it."""
    nested = getattr(command, "commands", {})
    if name != "tureen" and not nested:
        yield from (f"### {name}", "", f"`{' '.join([name, *_usage(command)])}`", "", *_said(command.help), "")
        rows = [_row(one) for one in command.params if one.name != "help"]
        if rows:
            yield from ("| | |", "|---|---|", *rows, "")
    for word, below in nested.items():
        yield from _command(below, f"{name} {word}")


def _usage(command: Any) -> Iterator[str]:
    if any(one.param_type_name == "option" for one in command.params):
        yield "[OPTIONS]"
    for one in command.params:
        if one.param_type_name == "argument":
            name = _argument(one)
            yield name if one.required else f"[{name}]"


def _said(text: str | None) -> Iterator[str]:
    """A docstring's paragraphs, each as one line."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ""
        yield " ".join(paragraph.split())


def _row(one: Any) -> str:
    if one.param_type_name == "argument":
        return f"| `{_argument(one)}` | {_cell(one.help)} |"
    names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    takes = "" if one.is_flag else f" `{one.metavar or _value(one.type_descriptor.annotation)}`".replace("|", "\\|")
    default = getattr(one.default, "value", one.default)
    usual = f" Usually `{default}`." if default is not None and default is not False and default != () else ""
    return f"| {names}{takes} | {_cell(one.help)}{usual} |"


_VALUES = {int: "NUMBER", float: "NUMBER", Path: "FILE", datetime: "TIME"}


def _value(kind: Any) -> str:
    """What an option takes."""
    return "|".join(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else _VALUES.get(kind, "TEXT")


def _argument(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def main() -> int:
    """Write the reference into the pages that are named."""
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(with_reference(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
