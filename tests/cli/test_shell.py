"""The shell with statements from a pipe, from `-c`, and from a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Self

import pytest

import tureen
from tests.cli.conftest import Cli
from tests.service.running import RunningServer
from tureen.cli.shell.completion import Name, completions
from tureen.cli.shell.splitting import is_complete, split
from tureen.keywords import KEYWORDS


def test_statements_from_pipe(cli: Cli, stream: str) -> None:
    result = cli(
        "sql",
        "-o",
        "csv",
        stdin=f"""-- a comment; with a semicolon
        REGISTER QUERY p_{stream} AS
          SELECT sym FROM {stream} WHERE sym <> 'a;b';
\\d {stream}
        SHOW STREAMS; INVOKE p_{stream}
        """,
    )
    assert result.code == 0, result.err
    assert f"p_{stream}" in result.out
    assert "kind,name,schema" in result.out
    assert result.out.endswith("sym\n")


def test_statements_from_option(cli: Cli, stream: str) -> None:
    assert cli("sql", "-c", f"SELECT count(*) AS n FROM {stream}", "-o", "json").json()["rows"] == [{"n": 0}]
    failed = cli("sql", "-c", f"SELECT sym FROM {stream}; SELECT prize FROM {stream}; SHOW STREAMS")
    assert failed.code == 1
    assert failed.err.splitlines()[1:3] == [f"  SELECT prize FROM {stream}", "         ^"]
    assert "TIMESTAMP" not in failed.out


def test_shell_commands(cli: Cli, stream: str) -> None:
    result = cli("sql", stdin=f"\\?\n\\d\n\\d {stream}\n\\o json\nSHOW TABLES;\n\\timing\n\\q\nSHOW NONSENSE;")
    assert result.code == 0, result.err
    for part in ("\\follow QUERY", "Streams", stream, "| ts     | TIMESTAMP |"):
        assert part in result.out
    for invalid in ("\\nope", "\\o yaml", "\\i nowhere.sql", "\\d nothing"):
        assert cli("sql", stdin=invalid).code == 1


def test_help_and_quit_as_words(cli: Cli) -> None:
    result = cli("sql", stdin="HELP\nhelp;\nquit\nSHOW NONSENSE;")
    assert (result.code, result.out.count("\\follow QUERY")) == (0, 2), result.err
    assert cli("sql", "-c", "exit;").code == 0


def test_text_is_split_into_statements() -> None:
    assert split("a; 'x;''y'; `q;r` /* ; */ -- ;\n; \"z;\\\";\" ;").statements == (
        "a",
        "'x;''y'",
        "`q;r` /* ; */ -- ;",
        '"z;\\";"',
    )
    assert split(" ; ; -- only\n;").statements == ()
    for text in ("SELECT 1", "SELECT ';", "SELECT 1; SELECT", "/* ;", "SELECT `a;"):
        assert not is_complete(text)
    for text in ("", " \n", "SELECT 1;", "SELECT 1; -- done", "\\d", "exit", "Quit ", "help"):
        assert is_complete(text)


def test_completions() -> None:
    names = [Name("trades", "stream"), Name("track", "column"), Name("trail", "query"), Name("tree", "table")]

    def texts(before: str) -> list[str]:
        word = re.split(r"\s", before)[-1]
        return [name.text for name in completions(before, word, names)]

    assert texts("SELECT * FROM tr") == ["trades", "tree"]
    assert texts("SELECT * FROM x JOIN tr") == ["trades", "tree"]
    assert texts("INVOKE tr") == ["trail"]
    assert texts("\\d tr") == ["trades", "trail", "tree"]
    assert texts("SELECT tr") == ["trades", "track", "tree", "true"]
    assert texts("SELECT TR")[-1] == "TRUE"
    assert texts("sel") == ["select"]
    assert len(set(KEYWORDS)) == len(KEYWORDS)


def test_completions_after_an_alias() -> None:
    columns = {"trades": ["sym", "price"], "quotes": ["sym", "bid"]}
    names = [Name(column, "column", relation) for relation, of in columns.items() for column in of]

    def texts(before: str, after: str) -> list[str]:
        word = re.split(r"\s", before)[-1]
        return [name.text for name in completions(before, word, names, before + after)]

    assert texts("SELECT q.", " FROM trades t, quotes AS q") == ["sym", "bid"]
    assert texts("SELECT t.p", " FROM trades [RANGE 5 MINUTES] t JOIN quotes q ON t.sym = q.sym") == ["price"]
    assert texts("SELECT * FROM trades JOIN quotes ON quotes.S", "") == ["sym"]
    assert texts("SELECT x.", " FROM trades t") == []
    assert texts("SELECT s", " FROM trades t, quotes q")[:1] == ["sym"]
    assert texts("SELECT s", "").count("sym") == 1


# Background jobs ignore SIGINT, and the tests may run as one; a command at a terminal does not.
COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tureen.cli.main import main
main()
"""


class Terminal:
    """A command, by default the shell, at a pseudo-terminal."""

    def __init__(self, env: dict[str, str], *arguments: str) -> None:
        """Start the command."""
        self._near, far = pty.openpty()
        termios.tcsetwinsize(far, (40, 120))
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *(arguments or ("sql",))], stdin=far, stdout=far, stderr=far, env=env
        )
        os.close(far)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._near)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._near, text.encode())

    def until(self, part: str, seconds: float = 60) -> str:
        """The output up to and including an expected text, without escape sequences."""
        deadline = time.monotonic() + seconds
        while part not in self.seen:
            ready, _, _ = select.select([self._near], [], [], 1.0)
            if ready:
                data = os.read(self._near, 1 << 16).decode(errors="replace")
                if "\x1b[6n" in data:
                    # The command asks for the position of the cursor.
                    os.write(self._near, b"\x1b[1;1R")
                self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data)
            assert time.monotonic() < deadline, f"no {part!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(part)
        return before + part

    def rest(self) -> str:
        """The output until the command exits."""
        while True:
            try:
                data = os.read(self._near, 1 << 16)
            except OSError:
                return self.seen
            self.seen += data.decode(errors="replace")


@pytest.fixture
def env(served_pot: RunningServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a command at a terminal."""
    return {
        **os.environ,
        "TUREEN_URL": served_pot.url,
        "TUREEN_TOKEN": served_pot.tokens["admin"],
        "TUREEN_HISTORY": str(tmp_path / "history"),
        "TERM": "xterm",
    }


@pytest.fixture
def shell(env: dict[str, str]) -> Iterator[Terminal]:
    """A shell at a terminal, killed at the end of the test."""
    with Terminal(env) as terminal:
        yield terminal


def test_statements_typed_at_terminal(shell: Terminal, env: dict[str, str], stream: str) -> None:
    shell.until(f"tureen {version('tureen')}, server {version('tureen')} at {env['TUREEN_URL']}")
    shell.until("tureen>")
    shell.type(f"SELECT sym,\r  prize FROM {stream};\r")
    shell.until("...>")
    shell.until("error: no column 'prize'")
    shell.until("line 2:   prize FROM")
    shell.until("did you mean 'price'?")
    # Tab completes a name, and the statement runs.
    shell.until("tureen>")
    shell.type(f"DESCRIBE {stream.removesuffix('ades')}\t")
    shell.until("ades")
    shell.type(";\r")
    shell.until("TIMESTAMP")
    shell.until(" ms")
    # Ctrl-C discards the line.
    shell.until("tureen>")
    shell.type("SELECT nonsense\x03")
    shell.until("tureen>")
    shell.type("help\r")
    shell.until("\\timing")
    shell.until("tureen>")
    shell.type("exit\r")
    assert shell.process.wait(30) == 0
    history = Path(env["TUREEN_HISTORY"])
    assert f"+  prize FROM {stream};" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_waiting_shows_reason_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    """On a local pot, whose Spark is still starting. Pushed rows need no Spark, a later commit does."""
    (tmp_path / "rows.json").write_text('[{"n": 1}]')
    env = {**os.environ, "TUREEN_POT": str(tmp_path / "pot"), "TERM": "xterm"}
    env.pop("TUREEN_URL", None)
    with tureen.open(tmp_path / "pot") as soup:
        soup.create_stream("s", "n INT")
        soup.register("SELECT n FROM s", name="all")
    with Terminal(env, "push", "s", str(tmp_path / "rows.json"), "--wait") as push:
        assert push.process.wait(60) == 0
        assert "Traceback" not in push.rest()
    with Terminal(env, "query", "invoke", "all", "--wait-for", "999999999999999") as invoke:
        invoke.until("Spark is starting")
        invoke.process.send_signal(signal.SIGINT)
        assert invoke.process.wait(60) == 130
        assert "Traceback" not in invoke.rest()
