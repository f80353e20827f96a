"""`tureen sql`: statements typed, piped or given, run one after the other, with their outcomes printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from tureen.cli.error_output import pointing_into, tell
from tureen.cli.following import follow_changes
from tureen.cli.output import Format, show_answer, show_object, show_rows
from tureen.cli.shell.splitting import command_of, first_word, split
from tureen.cli.target import AnySoup
from tureen.client.client import Client
from tureen.errors import Forbidden, TureenError
from tureen.results.answer import Answer
from tureen.schema import Schema
from tureen.soup.standing import StandingQuery

HELP = r"""Statements end with a semicolon and may go over several lines: SHOW STREAMS;
  \d             list streams, tables, templates and queries
  \d NAME        describe one of them
  \o FORMAT      write outcomes as table, json or csv
  \follow QUERY  print every row that joins a query's answer, until Ctrl-C
  \timing        tell how long statements take, or not
  \i FILE        run the statements of a file
  \?             this list (so does help)
  \q             leave (so do exit, quit and Ctrl-D)
"""


def banner(soup: AnySoup) -> str:
    """The version of this command, and the pot or the server with its version."""
    own = f"tureen {version('tureen')}"
    if not isinstance(soup, Client):
        return f"{own}, pot {soup.path}"
    try:
        return f"{own}, server {soup.status()['version']} at {soup.url}"
    except Forbidden:
        # A token that may only push.
        return f"{own}, server at {soup.url}"


class Leave(Exception):
    """The shell was asked to end."""


class Shell:
    """Runs statements and the shell's own commands on a soup."""

    def __init__(self, soup: AnySoup, output: Format) -> None:
        """Write outcomes in that format."""
        self.soup, self.output = soup, output
        self.timing = False
        self.changed: Callable[[], object] = lambda: None
        """What to call after statements that may have changed names."""

    def run_text(self, text: str) -> None:
        """Run all statements of a text, up to the first that fails; lines that begin with a backslash are commands."""
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
            for statement in split(pending).whole:
                self.statement(statement)
        except Leave:
            return

    def run_interactively(self) -> None:
        """Read and run until the user leaves."""
        # It brings prompt_toolkit, which a pipe does without.
        from tureen.cli.shell.prompt import Prompt  # noqa: PLC0415

        self.timing = True
        prompt = Prompt(self.soup)
        self.changed = prompt.forget
        print(f"{banner(self.soup)}\nStatements end with a semicolon; help shows the commands, exit leaves.")
        while True:
            text = prompt.read()
            if text is None:
                return
            try:
                self._interactively(text)
            except Leave:
                return
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)

    def _interactively(self, text: str) -> None:
        """Run what was typed; what goes wrong is told, and the shell goes on."""
        command = command_of(text)
        if command is not None:
            try:
                self.command(command)
            except TureenError as error:
                tell(error)
            return
        for statement in split(text).whole:
            try:
                self.statement(statement, point=False)
            except TureenError as error:
                tell(error, statement)
                return

    def statement(self, text: str, *, point: bool = True) -> None:
        """Run one statement and print what it gives."""
        if first_word(text) != "CREATE":
            self._check_pot()
        began = time.perf_counter()
        if point:
            with pointing_into(text):
                outcome = self.soup.sql(text)
        else:
            outcome = self.soup.sql(text)
        took = time.perf_counter() - began
        match outcome:
            case Answer():
                show_answer(outcome, self.output)
            case StandingQuery():
                show_object({"id": outcome.id, "name": outcome.name, "sql": outcome.sql}, self.output)
            case list():
                show_rows(outcome, self.output)
            case dict():
                show_object(outcome, self.output)
            case None if self.output is Format.TABLE:
                print("done")
        if self.timing:
            print(f"{took * 1000:.1f} ms", file=sys.stderr)
        if not isinstance(outcome, Answer):
            self.changed()

    def command(self, text: str) -> None:
        r"""Run one of the shell's own commands, such as `\d`."""
        word, _, argument = text.partition(" ")
        argument = argument.strip().rstrip(";").strip("`")
        match word.rstrip(";"):
            case "\\q":
                raise Leave
            case "\\?" | "\\h":
                print(HELP, end="")
            case "\\d" if argument:
                self._describe(argument)
            case "\\d":
                self._list()
            case "\\o":
                self._write_as(argument)
            case "\\timing":
                self.timing = not self.timing
                print(f"timing is {'on' if self.timing else 'off'}", file=sys.stderr)
            case "\\follow" if argument:
                follow_changes(self.soup.query(argument).changes(), self.output, None)
            case "\\i" if argument:
                self._run_file(argument)
            case _:
                raise TureenError(f"there is no command {word}", hint="\\? lists them")

    def _check_pot(self) -> None:
        """Refuse what only looks at a pot where there is none yet."""
        if not isinstance(self.soup, Client):
            # It knows the database, which a server's client does without.
            from tureen.pot.catalog import exists, no_pot  # noqa: PLC0415

            if not exists(self.soup.path):
                raise no_pot(self.soup.path)

    def _write_as(self, argument: str) -> None:
        if argument not in list(Format):
            raise TureenError(f"'{argument}' is no format", hint=f"\\o {'|'.join(Format)}")
        self.output = Format(argument)

    def _run_file(self, name: str) -> None:
        try:
            text = Path(name).expanduser().read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TureenError(f"'{name}' cannot be read", detail=str(error)) from None
        self.run_text(text)

    def _list(self) -> None:
        """Everything that has a name, one list below the other."""
        self._check_pot()
        parts = (
            ("Streams", self.soup.streams(), ("name", "schema", "time", "retain_seconds")),
            ("Tables", self.soup.tables(), ("name", "schema", "rows")),
            ("Templates", self.soup.templates(), ("name", "id", "queries", "sql")),
            ("Queries", self.soup.describe_queries(), ("name", "id", "state", "sql")),
        )
        for title, listed, columns in parts:
            if listed or title == "Streams":
                if self.output is Format.TABLE:
                    print(title)
                show_rows([{name: one[name] for name in columns} for one in listed], self.output, columns=columns)

    def _describe(self, name: str) -> None:
        """One stream, table or query, with its columns."""
        quoted = name.replace("`", "``")
        found = self.soup.sql(f"DESCRIBE `{quoted}`")
        assert isinstance(found, dict)
        schema = found.get("schema")
        if schema and self.output is Format.TABLE:
            rest = {key: value for key, value in found.items() if key != "schema" and value is not None}
            show_object(rest, self.output)
            columns = Schema.parse(schema).columns
            rows = [{"column": column.name, "type": column.type.sql} for column in columns]
            show_rows(rows, self.output, columns=("column", "type"))
        else:
            show_object(found, self.output)
