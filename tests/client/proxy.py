"""A door between a client and a server that can be shut, or lose what comes back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes both ways, until it is told to do worse."""

    def __init__(self, url: str) -> None:
        """Stand before the server at that address."""
        parts = urlsplit(url)
        self._server = (str(parts.hostname), int(parts.port or 0))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.lose_answers = 0
        """How many of the next answers are lost: the request arrives, and the connection is cut."""

        self.connections = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Cut all connections that are there."""
        with self._lock:
            some, self._open = self._open, set()
        for one in some:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def shut(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def open_again(self) -> None:
        """Take connections at the same port again."""
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
            threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self.lose_answers:
                    self.lose_answers -= 1
                    break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def proxy(url: str) -> Iterator[Proxy]:
    """A proxy before that server."""
    found = Proxy(url)
    try:
        yield found
    finally:
        found.shut()
