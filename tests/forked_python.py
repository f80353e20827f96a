"""Spark's Python processes of the tests are forked from one that has imported what they run.

Spark starts a dozen Python processes for each session, and importing modules takes most of their time: some five
seconds of processor time per session. Here Spark starts a small program instead, `PYSPARK_PYTHON`. It sends its
arguments, its environment and its standard streams to a server, which forks, and lives as long as the fork, so that
Spark can wait for it and end it. It runs Python itself for other modules, and if there is no server.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tureen.faults import CRASH_DIRECTORY, use_crash_directory

ADDRESS = "SPARK_FORKED_PYTHON"
"""The environment variable with the path of the server's socket."""

_FORKED = (
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "tureen.pipeline.daemon",
)
"""The modules that are run in a forked process."""

_IMPORTED = (
    *_FORKED,
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
    "pyspark_tureen",
    "tureen.pipeline.answers",
    "tureen.pipeline.inbox_sink",
    "tureen.pipeline.inbox_source",
    "tureen.pipeline.join_task",
    "tureen.pipeline.preload",
    "tureen.pipeline.sink",
)
"""What the server imports: the modules that Spark runs, and those that data sources import on demand."""

_LAUNCHER = """#!{python} -IS
import os
import sys

address = os.environ.get({variable!r})
settings = [name for name in os.environ if name.startswith("TUREEN_") and name != {crash_directory!r}]
if address and not settings and sys.argv[1:2] == ["-m"] and sys.argv[2] in {modules!r}:
    from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

    server = socket(AF_UNIX)
    try:
        server.connect(address)
    except OSError:
        pass
    else:
        texts = [os.getcwd(), str(len(sys.argv) - 2), *sys.argv[2:], *map("=".join, os.environ.items())]
        content = chr(0).join(texts).encode(errors="surrogateescape")
        streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
        server.sendmsg([len(content).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
        server.sendall(content)
        code = server.recv(1)
        os._exit(code[0] if code else 1)
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""
"""It ignores the environment and installed packages, so that it starts in a hundredth of a second."""


def write_launcher() -> Path:
    """Write the program that Spark runs in place of Python."""
    path = Path(sys.prefix) / "spark-python"
    text = _LAUNCHER.format(python=sys.executable, variable=ADDRESS, modules=_FORKED, crash_directory=CRASH_DIRECTORY)
    path.write_text(text)
    path.chmod(0o755)
    return path


@contextmanager
def forked_python() -> Iterator[None]:
    """Let sessions that are started in this context, or by processes that are, fork their Python processes."""
    with tempfile.TemporaryDirectory() as directory:
        address = Path(directory) / "socket"
        command = [sys.executable, "-m", "tests.forked_python", str(address)]
        # It ends when its standard input is closed, and its modules hash texts as those of Spark's processes do.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as server:
            os.environ |= {"PYSPARK_PYTHON": str(write_launcher()), ADDRESS: str(address)}
            try:
                yield
            finally:
                del os.environ["PYSPARK_PYTHON"], os.environ[ADDRESS]
                server.terminate()


@dataclass(frozen=True)
class _Request:
    """What a launcher was started with."""

    directory: str
    arguments: list[str]
    environment: dict[str, str]
    streams: list[int]

    @classmethod
    def received(cls, connection: socket.socket) -> _Request:
        """Receive it from a launcher."""
        header, streams, _, _ = socket.recv_fds(connection, 8, 3)
        content = bytearray()
        while len(content) < int.from_bytes(header, "big"):
            content += connection.recv(1 << 16)
        directory, count, *texts = content.decode(errors="surrogateescape").split("\0")
        arguments, variables = texts[: int(count)], texts[int(count) :]
        return cls(directory, arguments, dict(variable.split("=", 1) for variable in variables), streams)

    def run(self) -> None:
        """Run the module in this process, as if Python had been started for it."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        if CRASH_DIRECTORY in self.environment:
            use_crash_directory(Path(self.environment[CRASH_DIRECTORY]), spared=False)
        paths = [self.directory, *self.environment.get("PYTHONPATH", "").split(os.pathsep)]
        sys.path[:] = dict.fromkeys([*filter(None, paths), *sys.path])
        sys.argv[1:] = self.arguments[1:]
        with warnings.catch_warnings():
            # The module was imported already.
            warnings.simplefilter("ignore", RuntimeWarning)
            runpy.run_module(self.arguments[0], run_name="__main__", alter_sys=True)


def serve(address: Path) -> _Request | None:
    """Fork for every launcher that connects; returns its request in the fork, and None at the end of standard input."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(str(address))
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        launchers: dict[int, socket.socket] = {}
        """The launcher of each forked process, by its process id."""
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    request = _Request.received(connection)
                    process = os.fork()
                    if process == 0:
                        for other in [connection, *launchers.values()]:
                            other.close()
                        return request
                    for stream in request.streams:
                        os.close(stream)
                    launchers[process] = connection
                    selector.register(connection, selectors.EVENT_READ, process)
                    selector.register(os.pidfd_open(process), selectors.EVENT_READ, process)
                elif isinstance(key.fileobj, int):
                    _, status = os.waitpid(key.data, 0)
                    selector.unregister(key.fileobj)
                    os.close(key.fileobj)
                    connection = launchers.pop(key.data)
                    with suppress(KeyError):
                        selector.unregister(connection)
                    with suppress(OSError):
                        connection.send(bytes([max(os.waitstatus_to_exitcode(status), 0) & 255]))
                    connection.close()
                else:
                    # Spark has ended the launcher.
                    selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGTERM)


def main() -> None:
    """Import the modules and serve; a forked process returns from here when its module ends."""
    for module in _IMPORTED:
        importlib.import_module(module)
    importlib.import_module("tureen.pipeline.preload").preload()
    assert threading.active_count() == 1, f"forking would lose the threads {threading.enumerate()}"
    gc.collect()
    gc.freeze()
    request = serve(Path(sys.argv[1]))
    if request is not None:
        request.run()


if __name__ == "__main__":
    main()
