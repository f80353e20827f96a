"""A running link: it receives frames, reconnects, and records since when its peer is away."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tureen.errors import Forbidden, PeerFailed, StorageFailed, TooMany, TureenError, Unauthorized, UnknownStream
from tureen.federation.link_intake import LinkIntake
from tureen.federation.local_neighbour import LocalNeighbour
from tureen.federation.neighbour import Neighbour
from tureen.pot.links import Link
from tureen.sharing.partial_rows import has_partial_rows
from tureen.window import from_micros

log = logging.getLogger("tureen")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""The seconds between two attempts to connect: the pause doubles, up to the longest."""

REFUSED_PAUSE = 10.0
"""The seconds after which a peer is asked again that has refused a flow, or has sent what it must not send."""

CHECK_SECONDS = 0.5
"""The interval at which a link checks that its peer was not removed."""

TROUBLED = ("away", "refused", "failed")
"""The states of a link that receives nothing at the moment."""

REFUSED = (UnknownStream, Forbidden, Unauthorized, PeerFailed, TooMany)


class LinkState(NamedTuple):
    """What people see of a link."""

    link: Link
    state: str
    """One of "connecting", "receiving", "current", "away", "refused", and "failed" if rows cannot be stored here."""
    since: int
    """When it got into that state, in microseconds."""
    error: str | None
    rows: int
    """The rows that were received since the server started."""
    bytes: int
    next_id: int
    """The id at the home up to which everything is stored."""
    connections: int

    @property
    def is_aggregated(self) -> bool:
        """Whether it receives partial aggregates instead of tuples."""
        return has_partial_rows(self.link.replica.schema)


class LinkRun:
    """One link of this server, in a thread or step by step."""

    def __init__(
        self,
        link: Link,
        open_intake: Callable[[], LinkIntake],
        connect: Callable[[str], Neighbour],
        clock: Callable[[], int],
    ) -> None:
        """Receive a link; `connect` returns the connection to a peer of a name.

        `open_intake` is called once no earlier run of the replica stores rows.
        """
        self.link, self._open_intake, self._connect, self._clock = link, open_intake, connect, clock
        self._intake: LinkIntake | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._state, self._since, self._error = "connecting", clock(), ""
        self._sender_away: str | None = None
        self._rows = self._bytes = self._connections = 0

    @property
    def state(self) -> LinkState:
        """What people see of it."""
        next_id = 0 if self._intake is None else self._intake.progress.next_id
        error = self._error or self._sender_away
        return LinkState(
            self.link, self._state, self._since, error, self._rows, self._bytes, next_id, self._connections
        )

    def trouble(self) -> str | None:
        """Why answers from the replica may lack tuples; None if it is current."""
        name, peer = self.link.stream.name, self.link.peer
        if self._state == "current":
            return self._sender_away
        if self._state in ("connecting", "receiving"):
            return f"stream '{name}' is still being received from '{peer}'"
        moment = from_micros(self._since).isoformat(timespec="seconds")
        if self._state == "failed":
            return f"stream '{name}' is not up to date: its tuples could not be stored since {moment} ({self._error})"
        verb = "has been away" if self._state == "away" else "has refused to send it"
        return f"stream '{name}' is not up to date: '{peer}' {verb} since {moment} ({self._error})"

    def start(self, before: LinkRun | None = None) -> None:
        """Receive in a thread, once an earlier run of the same replica has ended."""
        name = f"tureen-link-{self.link.id}"
        self._thread = threading.Thread(target=self._run, args=(before,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop receiving; what was received is stored."""
        self._stopping.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait until the thread has ended, at most some seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def receive(self) -> int:
        """Receive until the connection ends or the link is stopped; return the number of rows."""
        rows, intake = 0, self._intake or self._open_intake()
        self._intake = intake
        request = intake.request
        neighbour, checked_at = self._connect(self.link.peer), time.monotonic()
        with neighbour.frames(request, intake.schema) as frames:
            for frame in frames:
                if time.monotonic() - checked_at > CHECK_SECONDS:
                    # The peer may have been removed, or have another address now.
                    checked_at = time.monotonic()
                    if type(neighbour) is not LocalNeighbour and self._connect(self.link.peer) is not neighbour:
                        break
                if self._connections == 0 or self._state not in ("receiving", "current"):
                    self._connections += 1
                    self._enter("receiving")
                new = intake.take(frame)
                rows, self._rows, self._bytes = rows + new, self._rows + new, self._bytes + frame.size
                self._sender_away = frame.away
                if frame.current and self._state != "current":
                    self._enter("current")
                if self._stopping.is_set():
                    break
        return rows

    def try_receive(self) -> bool:
        """As `receive`, but an error becomes the state; returns whether the connection ended without one."""
        try:
            self.receive()
        except StorageFailed as error:
            self._enter("failed", error)
        except REFUSED as error:
            self._enter("refused", error)
        except TureenError as error:
            self._enter("away", error)
        else:
            return True
        return False

    def _run(self, before: LinkRun | None) -> None:
        if before is not None:
            before.join()
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            connections = self._connections
            try:
                ended = self.try_receive()
            except Exception as error:
                log.exception("link %d to '%s' failed", self.link.id, self.link.peer)
                self._enter("away", TureenError(str(error) or type(error).__name__))
                ended = False
            if self._stopping.is_set():
                return
            if ended:
                self._enter("away", TureenError("the connection was closed"))
            if self._connections > connections:
                pause = FIRST_PAUSE
            wait = REFUSED_PAUSE if self._state == "refused" else pause
            self._stopping.wait(wait * (0.5 + random.random() / 2))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _enter(self, state: str, error: TureenError | None = None) -> None:
        if state != self._state:
            if error is not None:
                log.warning(
                    "link to '%s' for stream '%s' is %s: %s", self.link.peer, self.link.stream.name, state, error
                )
            elif state == "current":
                log.info("stream '%s' is received from '%s'", self.link.stream.name, self.link.peer)
            self._state, self._since = state, self._clock()
        self._error = "" if error is None else error.message
