"""Client connections, closed when their requests are too large, too slow or too many.

These limits are below the application: a request refused here has not been authenticated, and costs no task.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tureen.service.bodies import seconds_for
from tureen.service.error_responses import HttpError, error_response
from tureen.service.settings import Settings

DIRECT_WRITE = "tureen.direct_write"
"""The key of a request's scope with a function that writes a chunk of its response, for `direct_events.py`."""

FOLLOWED = "/changes"
"""How the paths of event streams end."""

MAX_PIPELINED = 64
"""The number of pipelined requests that may wait on a connection."""

LINGER_SECONDS = 2.0
"""How long input is discarded after a refusal, so that the client can read the response before the connection ends."""

ABORT_MARGIN = 1.0
"""A slow body's connection is aborted this many seconds after the application should have refused it."""


def encode_chunk(body: bytes) -> bytes:
    """A part of a body, which must not be empty, as a chunk of HTTP/1.1.

    >>> encode_chunk(b"twelve bytes").split()
    [b'c', b'twelve', b'bytes']
    """
    return b"%x\r\n%b\r\n" % (len(body), body)


class Phase(enum.Enum):
    """The part of a request that is being read."""

    IDLE = enum.auto()
    HEADERS = enum.auto()
    BODY = enum.auto()
    REFUSED = enum.auto()


class Connection(HttpToolsProtocol):
    """Uvicorn's connection with limits; the server calls `check_timeouts` periodically."""

    def __init__(self, *args: Any, settings: Settings, on_refusal: Callable[[int], None], **options: Any) -> None:
        """Apply the limits of these settings; `on_refusal` is called with the status of each refusal."""
        super().__init__(*args, **options)
        self._settings, self._on_refusal = settings, on_refusal
        self._phase, self._since = Phase.IDLE, self.loop.time()
        self._refusal: HttpError | None = None
        # Bytes passed to the parser since it last completed an element.
        self._unparsed = self._body_bytes = 0
        self._progressed = False
        self._unsent, self._sent_at = 0, 0.0

    def connection_made(self, transport: Any) -> None:
        """Refuse a connection above the limit."""
        super().connection_made(transport)
        limit = self._settings.max_connections
        if len(self.connections) > limit:
            self._refuse(HttpError(503, f"the server accepts at most {limit:,} connections"))

    def data_received(self, data: bytes) -> None:
        """Pass data to the parser; refuse an element that exceeds the size limit before it is complete."""
        if self._refusal is not None:
            return
        self._progressed = False
        self._unparsed += len(data)
        super().data_received(data)
        if self._progressed:
            self._unparsed = 0
        elif self._unparsed > self._settings.max_header_bytes:
            self._refuse(self._large_headers())

    def on_message_begin(self) -> None:
        """Called at the first byte of a request."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self._raise(HttpError(503, f"a connection may have at most {MAX_PIPELINED} pipelined requests"))
        super().on_message_begin()
        self._progressed, self._phase, self._since = True, Phase.HEADERS, self.loop.time()

    def on_headers_complete(self) -> None:
        """Called when all headers have arrived; only now does the request get a task."""
        limit = self._settings.max_headers
        if len(self.headers) > limit:
            self._raise(HttpError(431, f"a request must have at most {limit:,} headers"))
        # If little was read in all, the headers need not be counted.
        if self._unparsed > self._settings.max_header_bytes and self._header_bytes() > self._settings.max_header_bytes:
            self._raise(self._large_headers())
        super().on_headers_complete()
        if self.scope["path"].endswith(FOLLOWED):
            # Of other requests, the scope would only refer to itself.
            scope: MutableMapping[str, Any] = self.scope  # type: ignore[assignment]
            scope[DIRECT_WRITE] = partial(self._write_chunk, self.cycle)
        self._progressed, self._phase, self._since, self._body_bytes = True, Phase.BODY, self.loop.time(), 0

    def _write_chunk(self, cycle: RequestResponseCycle, chunk: bytes) -> bool:
        """Write a chunk of a response that has begun, unless the client has to read first, or has gone."""
        if self.flow.write_paused or cycle.disconnected or self.transport.is_closing():
            return False
        if not cycle.chunked_encoding or cycle.response_complete:
            return False
        self.transport.write(chunk)
        return True

    def on_body(self, body: bytes) -> None:
        """Called with each part of a body."""
        super().on_body(body)
        self._progressed = True
        self._body_bytes += len(body)
        if self.cycle.response_complete and self._body_bytes > self._settings.max_body_bytes:
            # The client keeps sending a body that was refused.
            self.transport.abort()

    def on_message_complete(self) -> None:
        """Called at the last byte of a request."""
        super().on_message_complete()
        self._progressed, self._phase = True, Phase.IDLE

    def on_response_complete(self) -> None:
        """Called when the last byte of a response was written."""
        super().on_response_complete()
        if self._phase is Phase.IDLE:
            self._since = self.loop.time()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Refuse a request that the parser rejected, or that was refused during parsing."""
        self._refuse(self._refusal or HttpError(400, "the request is not valid HTTP/1.1"))

    def pause_writing(self) -> None:
        """Called when the client reads more slowly than the server writes."""
        super().pause_writing()
        self._unsent, self._sent_at = self.transport.get_write_buffer_size(), self.loop.time()

    def check_timeouts(self, now: float) -> None:
        """Close the connection if the client exceeded a time limit."""
        settings, elapsed = self._settings, now - self._since
        if self.flow.write_paused or self.transport.is_closing():
            self._check_write_timeout(now)
        elif self._phase is Phase.REFUSED and elapsed > LINGER_SECONDS:
            self.transport.abort()
        elif self._phase is Phase.HEADERS and elapsed > settings.header_seconds:
            self._refuse(HttpError(408, f"the headers were not sent within {settings.header_seconds:g} seconds"))
        elif self._phase is Phase.BODY and self.flow.read_paused:
            # The server paused reading: not the client's delay.
            self._since = now
        elif self._phase is Phase.BODY and elapsed > seconds_for(settings, self._body_bytes) + ABORT_MARGIN:
            self.transport.abort()
        elif self._phase is Phase.IDLE and self._is_free() and elapsed > settings.idle_seconds:
            self.transport.close()

    def _check_write_timeout(self, now: float) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent or not self._sent_at:
            self._unsent, self._sent_at = unsent, now
        elif now - self._sent_at > self._settings.write_seconds:
            self.transport.abort()

    def _is_free(self) -> bool:
        """Whether no response is pending."""
        return self.cycle is None or self.cycle.response_complete

    def _header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _large_headers(self) -> HttpError:
        return HttpError(431, f"the headers must be at most {self._settings.max_header_bytes:,} bytes")

    def _raise(self, refusal: HttpError) -> None:
        """Stop the parser, which then calls `send_400_response`."""
        self._refusal = refusal
        raise refusal

    def _refuse(self, refusal: HttpError) -> None:
        """Respond with an error and stop reading."""
        self._refusal = refusal
        self._on_refusal(refusal.status_code)
        if self._phase is Phase.BODY:
            self.transport.abort()
            return
        if not self._is_free():
            # The response to the previous request is being sent and becomes the last one.
            self._phase, self.cycle.keep_alive = Phase.IDLE, False
            self.pipeline.clear()
            return
        response = error_response(refusal, "-")
        lines = [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
        head = [STATUS_LINE[refusal.status_code], *lines, b"connection: close\r\n\r\n"]
        self.transport.write(b"".join(head) + bytes(response.body))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._phase, self._since = Phase.REFUSED, self.loop.time()
