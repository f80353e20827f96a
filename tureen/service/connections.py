"""Connections of clients: each ends where its requests are too large, too slow or too many.

This is below the application: what is refused here has not been looked at for a token, and costs no task.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tureen.service.bodies import seconds_for
from tureen.service.error_responses import Refusal, problem
from tureen.service.settings import Settings

MOST_PIPELINED = 64
"""How many requests of a connection may wait for the ones before them."""

LINGER = 2.0
"""For how many seconds what a refused client still sends is thrown away, so that it can read why."""

LATER = 1.0
"""So many seconds after the application should have refused a slow body, its connection is cut."""


class Phase(enum.Enum):
    """What of a request is being read."""

    IDLE = enum.auto()
    HEADERS = enum.auto()
    BODY = enum.auto()
    REFUSED = enum.auto()


class Connection(HttpToolsProtocol):
    """Uvicorn's connection, with limits; `check` is called now and then to see how long it has been waiting."""

    def __init__(self, *args: Any, settings: Settings, refused: Callable[[int], None], **more: Any) -> None:
        """Keep those limits; `refused` hears the status of each refusal."""
        super().__init__(*args, **more)
        self._settings, self._on_refusal = settings, refused
        self._phase, self._since = Phase.IDLE, self.loop.time()
        self._refusal: Refusal | None = None
        # Bytes that were given to the parser since it last came to the end of something.
        self._unread = self._body_bytes = 0
        self._moved = False
        self._unsent, self._sent_at = 0, 0.0

    def connection_made(self, transport: Any) -> None:
        """Refuse a connection that is one too many."""
        super().connection_made(transport)
        most = self._settings.max_connections
        if len(self.connections) > most:
            self._refuse(Refusal(503, f"the server has {most:,} connections, which is its limit"))

    def data_received(self, data: bytes) -> None:
        """Give what came to the parser; what it keeps without an end is bounded."""
        if self._refusal is not None:
            return
        self._moved = False
        self._unread += len(data)
        super().data_received(data)
        if self._moved:
            self._unread = 0
        elif self._unread > self._settings.max_header_bytes:
            self._refuse(self._large_headers())

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if len(self.pipeline) >= MOST_PIPELINED:
            self._raise(Refusal(503, f"more than {MOST_PIPELINED} requests at once on a connection"))
        super().on_message_begin()
        self._moved, self._phase, self._since = True, Phase.HEADERS, self.loop.time()

    def on_headers_complete(self) -> None:
        """All headers are there: only now is a task made for the request."""
        most = self._settings.max_headers
        if len(self.headers) > most:
            self._raise(Refusal(431, f"a request must have at most {most:,} headers"))
        # Where all that was read is little, the headers need not be counted.
        if self._unread > self._settings.max_header_bytes and self._header_bytes() > self._settings.max_header_bytes:
            self._raise(self._large_headers())
        super().on_headers_complete()
        self._moved, self._phase, self._since, self._body_bytes = True, Phase.BODY, self.loop.time(), 0

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        super().on_body(body)
        self._moved = True
        self._body_bytes += len(body)
        if self.cycle.response_complete and self._body_bytes > self._settings.max_body_bytes:
            # It was refused long ago, and goes on.
            self.transport.abort()

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        super().on_message_complete()
        self._moved, self._phase = True, Phase.IDLE

    def on_response_complete(self) -> None:
        """The last byte of an answer was written."""
        super().on_response_complete()
        if self._phase is Phase.IDLE:
            self._since = self.loop.time()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Refuse what the parser does not take, or what was refused while it parsed."""
        self._refuse(self._refusal or Refusal(400, "the request is not valid HTTP/1.1"))

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._unsent, self._sent_at = self.transport.get_write_buffer_size(), self.loop.time()

    def check(self, now: float) -> None:
        """End the connection where the client has been silent for too long."""
        settings, waited = self._settings, now - self._since
        if self.flow.write_paused or self.transport.is_closing():
            self._check_writing(now)
        elif self._phase is Phase.REFUSED and waited > LINGER:
            self.transport.abort()
        elif self._phase is Phase.HEADERS and waited > settings.header_seconds:
            self._refuse(Refusal(408, f"the headers were not sent within {settings.header_seconds:g} seconds"))
        elif self._phase is Phase.BODY and self.flow.read_paused:
            # Not the client's fault: nothing is read from it.
            self._since = now
        elif self._phase is Phase.BODY and waited > seconds_for(settings, self._body_bytes) + LATER:
            self.transport.abort()
        elif self._phase is Phase.IDLE and self._is_free() and waited > settings.idle_seconds:
            self.transport.close()

    def _check_writing(self, now: float) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent or not self._sent_at:
            self._unsent, self._sent_at = unsent, now
        elif now - self._sent_at > self._settings.write_seconds:
            self.transport.abort()

    def _is_free(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _large_headers(self) -> Refusal:
        return Refusal(431, f"the headers must be at most {self._settings.max_header_bytes:,} bytes")

    def _raise(self, refusal: Refusal) -> None:
        """Stop the parser; `send_400_response` is called when it has stopped."""
        self._refusal = refusal
        raise refusal

    def _refuse(self, refusal: Refusal) -> None:
        """Answer with an error, and read nothing more."""
        self._refusal = refusal
        self._on_refusal(refusal.status_code)
        if self._phase is Phase.BODY:
            self.transport.abort()
            return
        if not self._is_free():
            # The answer to the request before it is on its way, and is the last one.
            self._phase, self.cycle.keep_alive = Phase.IDLE, False
            self.pipeline.clear()
            return
        response = problem(refusal, "-")
        lines = [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
        head = [STATUS_LINE[refusal.status_code], *lines, b"connection: close\r\n\r\n"]
        self.transport.write(b"".join(head) + bytes(response.body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._phase, self._since = Phase.REFUSED, self.loop.time()
