"""Work in a process of its own, which says what it finds line by line and can be stopped at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any


class GaveUp(Exception):
    """A peer did not come to an end, or could not begin; the message says why."""


def converse(command: Sequence[str], asked: Mapping[str, Any], seconds: float) -> list[dict[str, Any]]:
    """Hand a question to a program, and take the JSON objects that it says until it ends or its time is up."""
    # In a session of its own, so that a JVM that it started ends with it.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        told, errors = process.communicate(json.dumps(asked), timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        told, _ = process.communicate()
        return read(told)
    if process.returncode:
        raise GaveUp(f"the job failed: {last_line(errors)}")
    return read(told)


def read(text: str) -> list[dict[str, Any]]:
    """The lines that are JSON objects; a last one that was cut off is none."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it does not say why")
