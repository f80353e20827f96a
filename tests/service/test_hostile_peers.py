"""Peers that send what they should not, or nothing."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress

import pyarrow as pa
import pytest

from tureen.errors import (
    PeerFailed,
    Unreachable,
)
from tureen.federation.frame import MEDIA_TYPE
from tureen.federation.neighbour import FlowRequest
from tureen.pot.peers import Peer
from tureen.service import http_neighbour
from tureen.service.http_neighbour import HttpNeighbour


class HostileServer:
    """Answers every request for a flow with the same bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            connection.recv(1 << 16)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(self._content)}\r\n\r\n"
            with suppress(ConnectionError):
                connection.sendall(head.encode() + self._content)

    def close(self) -> None:
        """Wait until the request is answered."""
        self._thread.join()
        self._socket.close()


@pytest.mark.parametrize(
    "content",
    [
        b"x" * 100,
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x02\x00\x00\x00\x00\x00\x00\x00{}",
        b'\x0c\x00\x00\x00\x04\x00\x00\x00{"next": 10}junk',
        b'\x0c\x00\x00\x00\x00\x00\x00\x00{"next": -1}',
    ],
)
def test_hostile_frames_are_refused(content: bytes) -> None:
    server = HostileServer(content)
    neighbour = HttpNeighbour(Peer("hostile", server.url))
    with (
        pytest.raises(PeerFailed),
        neighbour.frames(FlowRequest("SELECT v FROM s", "", 0), pa.schema([("v", pa.float64())])) as frames,
    ):
        list(frames)
    neighbour.close()
    server.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"name": 1}', "description of itself is not valid"),
        (b"x" * 2_000_000, "larger than allowed"),
    ],
)
def test_hostile_responses_are_refused(content: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_neighbour, "LARGEST_RESPONSE", 1_000_000)
    server = HostileServer(content)
    with closing(HttpNeighbour(Peer("hostile", server.url))) as neighbour, pytest.raises(PeerFailed, match=message):
        neighbour.info()
    server.close()


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    with closing(HttpNeighbour(Peer("nobody", url))) as neighbour, pytest.raises(Unreachable):
        neighbour.info()
