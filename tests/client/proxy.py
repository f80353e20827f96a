"""A TCP proxy between a client and a server that can refuse connections, cut them, or lose responses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards bytes in both directions until it is told to fail."""

    def __init__(self, url: str) -> None:
        """Listen on a free port, in front of the server at a URL."""
        parts = urlsplit(url)
        self._server = (str(parts.hostname), int(parts.port or 0))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.responses_to_lose = 0
        """The number of responses to lose: the request arrives, and the connection is cut."""

        self.connections = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Cut all open connections."""
        with self._lock:
            sockets, self._open = self._open, set()
        for connection in sockets:
            _close(connection)

    def stop(self) -> None:
        """Refuse new connections, and cut the open ones."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def restart(self) -> None:
        """Accept connections at the same port again."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            self.connections += 1
            far = socket.create_connection(self._server)
            with self._lock:
                self._open |= {near, far}
            threading.Thread(target=self._forward, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._forward, args=(far, near, True), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_response: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_response and self.responses_to_lose:
                    self.responses_to_lose -= 1
                    break
                target.sendall(data)
        _close(source)
        _close(target)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def proxy(url: str) -> Iterator[Proxy]:
    """Run a proxy in front of a server."""
    running = Proxy(url)
    try:
        yield running
    finally:
        running.stop()
