"""Which failed requests are retried, and after how long. Decides only; the transport waits and sends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

PATIENCE = 30.0
"""The default number of seconds for which a request is retried."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

_TRANSIENT = frozenset({502, 503, 504})


class Failure(Enum):
    """How far a failed request got."""

    REFUSED = "connection refused"
    UNSENT = "not sent"
    LOST = "sent, but no complete response"
    BUSY = "rejected by the server before it did anything"
    BROKEN = "failed at a gateway, perhaps after the server had executed it"


def failure_of(status: int) -> Failure | None:
    """The failure that an HTTP status means; None if the response is final."""
    if status in (429, 503):
        return Failure.BUSY
    return Failure.BROKEN if status in _TRANSIENT else None


@dataclass
class Retries:
    """The attempts of one request.

    `repeatable` says that the request is idempotent. `known` says that this server has answered before: a server that
    never did is more likely a wrong address than a server that is restarting.
    """

    repeatable: bool
    known: bool
    patience: float
    unsure: bool = field(default=False, init=False)
    """Whether an earlier attempt may have been executed."""

    _pause: float = field(default=FIRST_PAUSE, init=False)

    def pause_after(self, failure: Failure, elapsed: float, retry_after: float | None, jitter: float) -> float | None:
        """The number of seconds to wait before the next attempt; None to give up.

        `elapsed` is the time since the first attempt, `retry_after` what the server asked for, and `jitter` a random
        number from 0 to 1 that spreads the retries of many clients.

        >>> Retries(repeatable=True, known=True, patience=10).pause_after(Failure.LOST, 0.0, None, 1.0)
        0.1
        >>> Retries(repeatable=False, known=True, patience=10).pause_after(Failure.LOST, 0.0, None, 1.0)
        """
        doubtful = failure in (Failure.LOST, Failure.BROKEN)
        if (doubtful and not self.repeatable) or (failure is Failure.REFUSED and not self.known):
            return None
        self.unsure = self.unsure or doubtful
        pause = self._pause * (0.5 + jitter / 2) if retry_after is None else retry_after
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return pause if elapsed + pause <= self.patience else None
