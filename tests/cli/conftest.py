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

from tests.service.running import Running
from tureen.cli.main import run

_numbers = itertools.count()


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its output, where that is JSON."""
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def cli(
    served_pot: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Run `tureen …` and give what it printed; `stdin` is what comes from a pipe."""
    monkeypatch.setenv("TUREEN_URL", served_pot.url)
    monkeypatch.setenv("TUREEN_TOKEN", served_pot.tokens["admin"])
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = run(list(words))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture
def stream(cli: Cli) -> str:
    """A stream, made by the command line."""
    name = f"c{next(_numbers)}_trades"
    done = cli("stream", "create", name, "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP", "--time", "ts")
    assert (done.code, done.out) == (0, "")
    return name
