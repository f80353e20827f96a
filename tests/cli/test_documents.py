"""The examples of the pages about the command line and the client run."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

import tureen
from tests.cli.conftest import Cli
from tests.service.running import RunningServer

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text()


def test_first_steps_run(cli: Cli, served_pot: RunningServer) -> None:
    block = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1]
    lines = [line.partition("  #")[0].strip() for line in block.splitlines() if "tureen " in line]
    assert len(lines) == 6
    outputs = []
    for line in lines:
        producer, pipe, command = line.rpartition(" | ")
        arguments = shlex.split(command)[1:]
        if arguments[-1] == "sql":
            arguments += ["-c", "SHOW STREAMS"]
        if "follow" in arguments:
            arguments += ["--timeout", "0"]
        stdin = ""
        if pipe:
            stdin = subprocess.run(["sh", "-c", producer], capture_output=True, text=True, check=True).stdout
        result = cli(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        outputs.append(result.out)
    assert "IBM" in outputs[3], "the row is within the query's window"
    assert "IBM" in outputs[4], "the changes start with the oldest row"
    assert "trades" in outputs[-1]
    served_pot.soup.drop_stream("trades")


def test_client_examples_run(served_pot: RunningServer, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "client.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    names: dict[str, object] = {}
    for block in blocks:
        code = block.replace("http://127.0.0.1:7707", served_pot.url).replace("tureen_…", served_pot.tokens["admin"])
        exec(compile(code.replace("soup.close()", ""), "client.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["[{'sym': 'IBM', 'price': 120.5}]", "{'sym': 'IBM', 'price': 120.5}"]
    assert "unknown_column Location(line=1, column=8) did you mean 'price'?" in lines
    assert "IBM  120.5" in lines
    assert lines[-1] == "r-3 {'least': 120.0, 'sym': 'ACME', 'price': 121.5}"
    soup = names["soup"]
    assert isinstance(soup, tureen.Client)
    shown = re.findall(r"  # ((?:\w+ )?(?:insert|delete) .*)", page)
    assert [line for line in lines if "segment" in line] == shown
    promised = ["{'item': 180, 'price': 5.0}", "Punctuation(item=180)", "Punctuation(item=181)"]
    assert [line for line in lines if "item" in line] == promised
    for name in ("trades", "cars", "auctions", "bids"):
        soup.drop_stream(name)
    soup.close()
