"""The command line in this process, on a served pot."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.service.running import RunningServer
from tureen.cli.main import run

TIME = "2026-01-01T00:00:00Z"
"""The time of all pushed rows."""

_numbers = itertools.count()


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The output, parsed as JSON."""
        return json.loads(self.out)


Cli = Callable[..., CommandResult]


@pytest.fixture
def cli(served_pot: RunningServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `tureen …` in this process; `stdin` is the content of a pipe."""
    monkeypatch.setenv("TUREEN_URL", served_pot.url)
    monkeypatch.setenv("TUREEN_TOKEN", served_pot.tokens["admin"])
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, stdin: str = "") -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return CommandResult(code, out, err)

    return call


@pytest.fixture
def stream(cli: Cli) -> str:
    """A stream, created by the command line."""
    name = f"c{next(_numbers)}_trades"
    result = cli("stream", "create", name, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", "--time", "ts")
    assert (result.code, result.out) == (0, "")
    return name


def push_rows(stream: str, cli: Cli, *rows: tuple[str, float, int]) -> str:
    """Push rows as NDJSON, wait for them, and return their position."""
    text = "".join(f'{{"sym":"{a}","price":{b},"qty":{c},"ts":"{TIME}"}}\n' for a, b, c in rows)
    result = cli("push", stream, "-", "--format", "ndjson", "--wait", stdin=text)
    assert result.code == 0, result.err
    return result.out.strip()
