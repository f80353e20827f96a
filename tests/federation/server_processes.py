"""Servers in processes of their own, without Spark: forked from one process, so that only that one imports modules.

Run as a program, it reads names of servers from its input, one per line, and prints the process id of each that it
started. It keeps the addresses of all servers bound, so a server that was killed has its address when it is started
again; until then, connections wait.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import tureen
from tureen.pipeline import engine
from tureen.service import server
from tureen.service.settings import Settings

NEVER = 1e6


class ServerProcesses:
    """Starts servers, and kills them."""

    def __init__(self, root: Path, *names: str) -> None:
        """Prepare servers of these names, with pots in a directory."""
        command = [sys.executable, "-m", "tests.federation.server_processes", str(root), *names]
        # A thread of the allocator may hold a lock when the process is forked.
        environment = {**os.environ, "JE_ARROW_MALLOC_CONF": "background_thread:false"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.urls: dict[str, str] = json.loads(self._line())
        self._ids: dict[str, int] = {}

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def start(self, name: str) -> None:
        """Start a server; requests wait until it is there."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        self._ids[name] = int(self._line())

    def kill(self, name: str) -> None:
        """Kill a server, and wait until it is gone."""
        process_id = self._ids.pop(name)
        os.kill(process_id, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.write(f"-{process_id}\n")
        self._process.stdin.flush()
        assert int(self._line()) == process_id

    def close(self) -> None:
        """Kill all servers."""
        for name in list(self._ids):
            self.kill(name)
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def main() -> None:
    """Start servers, as the lines of the input say."""
    root, names = Path(sys.argv[1]), sys.argv[2:]
    addresses = {name: server.bind(Settings(port=0)) for name in names}
    print(
        json.dumps({name: f"http://127.0.0.1:{address.getsockname()[1]}" for name, address in addresses.items()}),
        flush=True,
    )
    gc.freeze()
    for line in sys.stdin:
        name = line.strip()
        if name.startswith("-"):
            print(os.waitpid(int(name[1:]), 0)[0], flush=True)
            continue
        process_id = os.fork()
        if process_id == 0:
            serve(root / name, name, addresses[name])
        print(process_id, flush=True)


def serve(pot: Path, name: str, address: socket.socket) -> None:
    """Serve a pot until the process is killed."""
    engine.SPARK_DELAY = NEVER
    # Its input and output belong to the process that starts servers.
    os.close(0)
    os.dup2(2, 1)
    with tureen.open(pot) as soup:
        server.run(soup, Settings(port=0, name=name, log_requests=False, log_level="error"), address)
    os._exit(0)


if __name__ == "__main__":
    main()
