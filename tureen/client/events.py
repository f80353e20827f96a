"""Changes over HTTP: server-sent events, resumed after a lost connection."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tureen.client.remote_errors import error_from
from tureen.client.retry import Failure, Retries
from tureen.client.row_types import RowTypes
from tureen.client.transport import AttemptFailed, Request, Transport
from tureen.errors import ServiceError
from tureen.punctuation import Punctuation
from tureen.results.answer import Change

SILENCE = 60.0
"""The number of seconds without a byte, not even a comment, after which a connection counts as lost."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    kind: str
    id: str | None
    data: str


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    r"""The lines of a stream of chunks; only line feeds end them, as rows may contain other separators.

    >>> list(lines_of([b"id: 7\r", b"\nda", b"ta: x\n\n", b"cut off"]))
    ['id: 7', 'data: x', '']
    """
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events in the lines of a stream, without an incomplete event at its end.

    >>> list(read_events(["id: 7", "event: change", "data: {}", "", ": still here", "", "data: cut off"]))
    [Event(kind='change', id='7', data='{}')]
    """
    kind, event_id = "message", None
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield Event(kind, event_id, "\n".join(data))
            kind, event_id, data = "message", None, []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                kind = value
            case "id":
                event_id = value
            case "data":
                data.append(value)


class EventFeed:
    """One feed of changes, over as many connections as it takes."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        since: str | None,
        timeout: float | None,
        types: RowTypes,
        chosen: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Connect at once, so that an invalid request raises here and not at the first change.

        `chosen` are further parameters of the request.
        """
        self._chosen = chosen
        self._transport, self._path, self._timeout, self._types = transport, path, timeout, types
        self._since = since
        self._last_event = time.monotonic()
        self._events = self._connect()
        self._first = self._next()

    def changes(self) -> Iterator[Change]:
        """The changes, without end or until none arrived for `timeout` seconds."""
        event = self._first
        try:
            while event is not None:
                if event.kind in ("change", "punctuation"):
                    body = json.loads(event.data)
                    yield self._change(body) if event.kind == "change" else self._punctuation(body)
                    # The caller's time between two changes does not count towards the timeout.
                    self._last_event = time.monotonic()
                event = self._next()
        finally:
            self._events.close()

    def _change(self, body: Mapping[str, Any]) -> Change:
        query, kind, before = body["query"], body.get("kind", "insert"), body.get("before")
        # A reset has no row.
        row = self._types.read(query, body["row"]) if body["row"] else {}
        was = None if before is None else self._types.read(query, before)
        template = self._types.template(query)
        return Change(query, row, self._since or "", body.get("label"), kind, was, template=template)

    def _punctuation(self, body: Mapping[str, Any]) -> Change:
        query = body["query"]

        def read(name: str, part: Any) -> Any:
            """A part of a pattern with the values of its column's type."""
            if isinstance(part, list):
                return [read(name, value) for value in part]
            if isinstance(part, Mapping):
                return {end: read(name, part[end]) if end in ("low", "high") else part[end] for end in part}
            return self._types.read(query, {name: part})[name]

        punctuation = Punctuation.of({name: read(name, part) for name, part in body["punctuation"].items()})
        return Change(query, None, self._since or "", kind="punctuation", punctuation=punctuation)

    def _next(self) -> Event | None:
        """The next event, over a new connection if the last one was lost; None at the end."""
        retries = Retries(repeatable=True, known=self._transport.known, patience=self._transport.patience)
        began: float | None = None
        while True:
            failed = AttemptFailed(Failure.LOST, ServiceError("the server keeps closing the connection"))
            try:
                event = next(self._events, None)
                if event is not None:
                    return self._accept(event)
                # The server's clock began a little earlier.
                if self._timeout is not None and time.monotonic() - self._last_event >= 0.95 * self._timeout:
                    return None
            except AttemptFailed as error:
                failed = error
            retries.known = self._transport.known
            # The time that passed before the connection was lost does not count.
            began = time.monotonic() if began is None else began
            pause = retries.pause_after(failed.failure, time.monotonic() - began, failed.retry_after, random.random())
            if pause is None:
                raise failed.error from failed.__cause__
            self._transport.pause(pause)
            self._events = self._connect()

    def _accept(self, event: Event) -> Event:
        """Remember the position of an event, or raise the error that it carries."""
        if event.kind == "error":
            body = json.loads(event.data)
            raise error_from(body.get("error", body))
        self._since = event.id or self._since
        self._last_event = time.monotonic()
        return event

    def _connect(self) -> Generator[Event]:
        """The events of one connection."""
        params: dict[str, Any] = dict(self._chosen)
        if self._since is not None:
            params["since"] = self._since
        if self._timeout is not None:
            params["timeout"] = max(0.0, self._timeout)
        request = Request("GET", self._path, params, headers={"Accept": "text/event-stream"})
        with self._transport.stream(request, silence=SILENCE + (self._timeout or 0.0)) as response:
            yield from read_events(lines_of(response.iter_bytes()))
