"""When a request is sent again, and after how long: decided here, done elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

PATIENCE = 30.0
"""For how many seconds a request is tried again, unless the caller says otherwise."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

_PASSING = frozenset({502, 503, 504})


class Failure(Enum):
    """What became of a request that got no answer to keep."""

    REFUSED = "nobody listens there"
    UNSENT = "it did not get as far as the server"
    LOST = "it was sent, and there was no whole answer"
    BUSY = "the server turned it away before doing anything"
    BROKEN = "something in between failed, perhaps after the server had done it"


def failure_of(status: int) -> Failure | None:
    """What an answer's status says about trying again; None where it is the answer."""
    if status in (429, 503):
        return Failure.BUSY
    return Failure.BROKEN if status in _PASSING else None


@dataclass
class Retries:
    """The attempts of one request.

    `repeatable` says that sending it twice does what sending it once does. `known` says that this server answered
    before: one that never did is more likely a wrong address than a server that is being restarted.
    """

    repeatable: bool
    known: bool
    patience: float
    unsure: bool = field(default=False, init=False)
    """Whether an earlier attempt may have been carried out."""

    _pause: float = field(default=FIRST_PAUSE, init=False)

    def pause_after(self, failure: Failure, spent: float, asked: float | None, chance: float) -> float | None:
        """For how long to wait before the next attempt, after so many seconds; None to give up.

        `asked` is what the server wants, `chance` a random number from 0 to 1, so that clients do not come together.

        >>> Retries(repeatable=True, known=True, patience=10).pause_after(Failure.LOST, 0.0, None, 1.0)
        0.1
        >>> Retries(repeatable=False, known=True, patience=10).pause_after(Failure.LOST, 0.0, None, 1.0)
        """
        doubtful = failure in (Failure.LOST, Failure.BROKEN)
        if (doubtful and not self.repeatable) or (failure is Failure.REFUSED and not self.known):
            return None
        self.unsure = self.unsure or doubtful
        pause = self._pause * (0.5 + chance / 2) if asked is None else asked
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return pause if spent + pause <= self.patience else None
