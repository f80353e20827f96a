"""Processes that are killed: forked from one that has loaded modules and kernels, which takes seconds."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["tests.crash.preloaded"])
"""Starts processes that have loaded what the crash tests need: a process can have one such list only."""


def run_until_killed(call: Callable[..., None], *arguments: Any) -> None:
    """Call a function of a module in a new process, which must kill itself."""
    with NamedTemporaryFile() as errors:
        process = FORKING.Process(target=_call, args=(errors.name, call, arguments))
        process.start()
        process.join()
        assert process.exitcode == -9, f"the process was not killed: {Path(errors.name).read_text()}"


def _call(errors: str, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 2)
    call(*arguments)
