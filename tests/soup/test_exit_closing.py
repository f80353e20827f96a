"""Programs that end without closing their pots."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tureen.soup import exit_closing

DERIVING = """
import sys
import tureen

soup = tureen.open(sys.argv[1])
soup.create_stream("a", "x INT")
soup.create_stream("squares", query="SELECT x * x AS y FROM a WHERE x * x > 1")
soup.push("a", [{"x": 1}, {"x": 2}])
"""
"""A program that ends while the thread that derives streams begins to work."""

CONNECTING = """
import sys
import duckdb
import tureen
from tureen.pipeline.deriving import Deriver

def connect(deriver):
    duckdb.connect().close()
    return True

Deriver.catch_up = connect
soup = tureen.open(sys.argv[1])
soup.create_stream("a", "x INT")
"""
"""A program that ends while that thread, whatever the moment, is in C++."""


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        (DERIVING, 0, ""),
        (CONNECTING, 0, ""),
        (DERIVING + "raise SystemExit(3)", 3, ""),
        (CONNECTING + "raise ValueError('wrong')", 1, "ValueError: wrong"),
    ],
    ids=["deriving", "connecting", "exit", "error"],
)
def test_programs_end_as_they_would_without_a_pot(tmp_path: Path, program: str, status: int, error: str) -> None:
    command = [sys.executable, "-c", program, str(tmp_path / "pot")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.splitlines()[-1:] == ([error] if error else [])


class CountedPot:
    """A pot that counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        """Count."""
        self.closed += 1


class EndedThread:
    """A main thread that has ended."""

    def join(self) -> None:
        """Return at once."""


def test_pots_that_were_closed_are_not_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests' pots are open in this process.
    monkeypatch.setattr(exit_closing, "_open", set())
    monkeypatch.setattr("threading.main_thread", EndedThread)
    pots = [CountedPot() for _ in range(3)]
    for pot in pots:
        exit_closing.close_at_exit(pot)
    exit_closing.forget(pots[1])
    exit_closing._close_at_exit()
    assert [pot.closed for pot in pots] == [1, 0, 1]


def test_forked_processes_leave_the_pots_of_their_parent_open() -> None:
    pot = CountedPot()
    exit_closing.close_at_exit(pot)
    try:
        if not (child := os.fork()):
            os._exit(len(exit_closing._open))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pot in exit_closing._open
    finally:
        exit_closing.forget(pot)
