"""Following over HTTP: server-sent events read as they come, and gone on with after a disconnection."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tureen.client.remote_errors import error_from
from tureen.client.retry import Failure, Retries
from tureen.client.transport import Request, Transport, TurnedAway
from tureen.errors import ServiceError
from tureen.results.answer import Change

SILENCE = 60.0
"""For how many seconds nothing may come, not even a comment, before the connection counts as lost."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    kind: str
    id: str | None
    data: str


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    r"""The lines in pieces of a stream; only line feeds end them, as a row may hold other separators.

    >>> list(lines_of([b"id: 7\r", b"\nda", b"ta: x\n\n", b"cut off"]))
    ['id: 7', 'data: x', '']
    """
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events in the lines of a stream; one that the stream's end cut off is left out.

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


Typed = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""What makes the row of a change of that query into one of the query's types."""


class Following:
    """One feed of changes, over as many connections as it takes."""

    def __init__(self, transport: Transport, path: str, since: str | None, timeout: float | None, typed: Typed) -> None:
        """Connect, so that what is wrong with the question is said now."""
        self._transport, self._path, self._timeout, self._typed = transport, path, timeout, typed
        self._since = since
        self._heard = time.monotonic()
        self._events = self._connected()
        self._first = self._next()

    def changes(self) -> Iterator[Change]:
        """The changes: for ever, or until nothing came for `timeout` seconds."""
        event = self._first
        try:
            while event is not None:
                if event.kind == "change":
                    told = json.loads(event.data)
                    row = self._typed(told["query"], told["row"])
                    yield Change(told["query"], row, self._since or "", told.get("label"))
                    # The time that the caller took is not the server's silence.
                    self._heard = time.monotonic()
                event = self._next()
        finally:
            self._events.close()

    def _next(self) -> Event | None:
        """The next event, after a disconnection from the place where the last one was; None at the end."""
        retries = Retries(repeatable=True, known=self._transport.known, patience=self._transport.patience)
        began = time.monotonic()
        while True:
            away = TurnedAway(Failure.LOST, ServiceError("the server ends the connection again and again"))
            try:
                event = next(self._events, None)
                if event is not None:
                    return self._heard_of(event)
                if self._timeout is not None and time.monotonic() - self._heard >= self._timeout:
                    return None
            except TurnedAway as found:
                away = found
            retries.known = self._transport.known
            pause = retries.pause_after(away.failure, time.monotonic() - began, away.asked, random.random())
            if pause is None:
                raise away.error from away.__cause__
            self._transport.rest(pause)
            self._events = self._connected()

    def _heard_of(self, event: Event) -> Event:
        if event.kind == "error":
            told = json.loads(event.data)
            raise error_from(told.get("error", told))
        self._since = event.id or self._since
        self._heard = time.monotonic()
        return event

    def _connected(self) -> Generator[Event]:
        """The events of one connection."""
        params: dict[str, Any] = {}
        if self._since is not None:
            params["since"] = self._since
        if self._timeout is not None:
            params["timeout"] = max(0.0, self._timeout)
        request = Request("GET", self._path, params, headers={"Accept": "text/event-stream"})
        with self._transport.stream(request, silence=SILENCE + (self._timeout or 0.0)) as response:
            yield from read_events(lines_of(response.iter_bytes()))
