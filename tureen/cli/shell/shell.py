"""`tureen sql`: runs statements that are typed, piped or passed with -c, and prints their results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tureen.cli.error_output import pointing_into, print_error
from tureen.cli.following import follow_changes
from tureen.cli.output import Format, show_answer, show_explanation, show_object, show_rows
from tureen.cli.shell.splitting import command_of, first_word, split
from tureen.cli.target import AnySoup
from tureen.client.client import Client
from tureen.errors import Forbidden, TureenError
from tureen.results.answer import Answer
from tureen.schema import Schema
from tureen.soup.standing import StandingQuery
from tureen.why.explanation import Explanation

if TYPE_CHECKING:
    from tureen.soup.embedded import Soup

HELP = r"""Statements end with a semicolon and may span several lines: SHOW STREAMS;
  \d             list streams, tables, templates and queries
  \d NAME        describe a stream, table, template or query
  \o FORMAT      set the output format: table, json or csv
  \follow QUERY  print each row that joins a query's answer, until Ctrl-C
  \timing        switch the display of execution times on or off
  \i FILE        run the statements of a file
  \?             show this list (also help)
  \q             quit (also exit, quit and Ctrl-D)
"""


def pot_directory(soup: AnySoup) -> Path | None:
    """The directory of a local pot; None for a server."""
    return None if isinstance(soup, Client) else cast("Soup", soup).path


def banner(soup: AnySoup) -> str:
    """The version of the command line, and the pot, or the server with its version."""
    program = f"tureen {version('tureen')}"
    if not isinstance(soup, Client):
        return f"{program}, pot {pot_directory(soup)}"
    try:
        return f"{program}, server {soup.status()['version']} at {soup.url}"
    except Forbidden:
        # The token may push but not read.
        return f"{program}, server at {soup.url}"


class Quit(Exception):
    """Raised by the commands that end the shell."""


class Shell:
    """Runs statements and the shell's own commands on a soup."""

    def __init__(self, soup: AnySoup, output: Format) -> None:
        """Run statements on a soup and print results in a format."""
        self.soup, self.output = soup, output
        self.timing = False
        self.changed: Callable[[], object] = lambda: None
        """Called after statements that may have changed names."""

    def run_text(self, text: str) -> None:
        """Run the statements of a text until one fails; lines that start with a backslash are commands."""
        try:
            pending = ""
            for line in text.splitlines(keepends=True):
                command = command_of(line) if not pending.strip() else None
                if command is not None:
                    self.command(command)
                    continue
                pieces = split(pending + line)
                pending = pieces.rest
                for statement in pieces.statements:
                    self.statement(statement)
            for statement in split(pending).all_statements:
                self.statement(statement)
        except Quit:
            return

    def run_interactively(self) -> None:
        """Read and run input until the user quits."""
        # It imports prompt_toolkit, which a pipe does not need.
        from tureen.cli.shell.prompt import Prompt  # noqa: PLC0415

        self.timing = True
        prompt = Prompt(self.soup)
        self.changed = prompt.forget
        print(f"{banner(self.soup)}\nStatements end with a semicolon; help lists the commands, exit quits.")
        while True:
            text = prompt.read()
            if text is None:
                return
            try:
                self._run_typed(text)
            except Quit:
                return
            except KeyboardInterrupt:
                print("interrupted", file=sys.stderr)

    def _run_typed(self, text: str) -> None:
        """Run typed input; errors are printed and do not end the shell."""
        command = command_of(text)
        if command is not None:
            try:
                self.command(command)
            except TureenError as error:
                print_error(error)
            return
        for statement in split(text).all_statements:
            try:
                self.statement(statement, point=False)
            except TureenError as error:
                print_error(error, statement)
                return

    def statement(self, text: str, *, point: bool = True) -> None:
        """Run one statement and print its result."""
        if first_word(text) != "CREATE":
            self._check_pot()
        began = time.perf_counter()
        if point:
            with pointing_into(text):
                outcome = self.soup.sql(text)
        else:
            outcome = self.soup.sql(text)
        seconds = time.perf_counter() - began
        match outcome:
            case Answer():
                show_answer(outcome, self.output)
            case Explanation():
                show_explanation(outcome, self.output)
            case StandingQuery():
                show_object({"id": outcome.id, "name": outcome.name, "sql": outcome.sql}, self.output)
            case list():
                show_rows(outcome, self.output)
            case dict():
                show_object(outcome, self.output)
            case None if self.output is Format.TABLE:
                print("done")
        if self.timing:
            print(f"{seconds * 1000:.1f} ms", file=sys.stderr)
        if not isinstance(outcome, Answer | Explanation):
            self.changed()

    def command(self, text: str) -> None:
        r"""Run one of the shell's own commands, such as `\d`."""
        word, _, argument = text.partition(" ")
        argument = argument.strip().rstrip(";").strip("`")
        match word.rstrip(";"):
            case "\\q":
                raise Quit
            case "\\?" | "\\h":
                print(HELP, end="")
            case "\\d" if argument:
                self._describe(argument)
            case "\\d":
                self._list_all()
            case "\\o":
                self._set_output(argument)
            case "\\timing":
                self.timing = not self.timing
                print(f"timing is {'on' if self.timing else 'off'}", file=sys.stderr)
            case "\\follow" if argument:
                follow_changes(self.soup.query(argument).changes(), self.output, None)
            case "\\i" if argument:
                self._run_file(argument)
            case _:
                raise TureenError(f"unknown command {word}", hint="\\? lists the commands")

    def _check_pot(self) -> None:
        """Raise if the local pot does not exist; only CREATE statements create it."""
        directory = pot_directory(self.soup)
        if directory is not None:
            # It imports the database, which a client does not need.
            from tureen.pot.catalog import exists, no_pot  # noqa: PLC0415

            if not exists(directory):
                raise no_pot(directory)

    def _set_output(self, argument: str) -> None:
        if argument not in list(Format):
            raise TureenError(f"format must be table, json or csv, got '{argument}'")
        self.output = Format(argument)

    def _run_file(self, name: str) -> None:
        try:
            text = Path(name).expanduser().read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TureenError(f"'{name}' cannot be read", detail=str(error)) from None
        self.run_text(text)

    def _list_all(self) -> None:
        """Print the streams, tables, templates and queries."""
        self._check_pot()
        lists = (
            ("Streams", self.soup.streams(), ("name", "schema", "time", "retain_seconds")),
            ("Tables", self.soup.tables(), ("name", "schema", "rows")),
            ("Templates", self.soup.templates(), ("name", "id", "queries", "sql")),
            ("Queries", self.soup.describe_queries(), ("name", "id", "state", "sql")),
        )
        for title, entries, columns in lists:
            if entries or title == "Streams":
                if self.output is Format.TABLE:
                    print(title)
                show_rows([{name: entry[name] for name in columns} for entry in entries], self.output, columns=columns)

    def _describe(self, name: str) -> None:
        """Print a stream, table, template or query, with its columns."""
        quoted = name.replace("`", "``")
        description = self.soup.sql(f"DESCRIBE `{quoted}`")
        assert isinstance(description, dict)
        schema = description.get("schema")
        if schema and self.output is Format.TABLE:
            fields = {key: value for key, value in description.items() if key != "schema" and value is not None}
            show_object(fields, self.output)
            columns = Schema.parse(schema).columns
            rows = [{"column": column.name, "type": column.type.sql} for column in columns]
            show_rows(rows, self.output, columns=("column", "type"))
        else:
            show_object(description, self.output)
