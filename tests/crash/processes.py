"""Processes that are killed: forked from one that has loaded modules and kernels, which takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.connection import arbitrary_address  # type: ignore[attr-defined]
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from tureen.faults import CRASH_DIRECTORY, use_crash_directory

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["tests.crash.preloaded"])
"""Starts processes that have loaded what the crash tests need: a process can have one such list only."""


def fork_server() -> None:
    """Let processes be forked from a fork of this one, which has a single thread and has loaded all that they need.

    Otherwise a new process would load it again, in three seconds of processor time.
    """
    server: Any = forkserver._forkserver
    address = arbitrary_address("AF_UNIX")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        # Its end tells the server that this process has ended.
        alive, kept_open = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(kept_open)
                forkserver.main(listener.fileno(), alive, [])
            finally:
                os._exit(0)
    os.close(alive)
    server._forkserver_address, server._forkserver_alive_fd, server._forkserver_pid = address, kept_open, pid


def run_until_killed(call: Callable[..., None], *arguments: Any) -> None:
    """Call a function of a module in a new process, which must kill itself."""
    with NamedTemporaryFile() as errors:
        process = FORKING.Process(target=_call, args=(errors.name, Path(os.environ[CRASH_DIRECTORY]), call, arguments))
        process.start()
        process.join()
        assert process.exitcode == -9, f"the process was not killed: {Path(errors.name).read_text()}"


def _call(errors: str, crash_directory: Path, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    with open(errors, "w") as file:
        os.dup2(file.fileno(), 2)
    use_crash_directory(crash_directory, spared=False)
    call(*arguments)
