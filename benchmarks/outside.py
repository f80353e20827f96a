"""Runs a program in a separate process that prints results line by line and can be killed at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any


class PeerFailed(Exception):
    """A peer did not finish in time or could not start; the message is the reason."""


def run_program(command: Sequence[str], request: Mapping[str, Any], seconds: float) -> list[dict[str, Any]]:
    """Send a request to a program, and return the JSON objects that it prints until it ends or times out."""
    # In a new session, so that a JVM that it started is killed with it.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(json.dumps(request), timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return parse_lines(output)
    if process.returncode:
        raise PeerFailed(f"the job failed: {last_line(errors)}")
    return parse_lines(output)


def parse_lines(text: str) -> list[dict[str, Any]]:
    """The lines that are complete JSON objects."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def last_line(text: str) -> str:
    """The last line that is not empty."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no error message")
