"""The servers that wait for the answer of a request which peers pass on to each other, and for how long they wait."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tureen.errors import Unreachable

PLAN_SECONDS = 10.0
"""The most seconds for which a plan waits for peers."""

SHORTEST_WAIT = 0.02
"""With less time left, nobody is asked."""


@dataclass(frozen=True)
class Askers(Collection[str]):
    """The servers that wait for an answer, which must not be asked themselves, and until when they wait.

    A call gets half of the time that is left. So a server answers before those that wait for it give up, also if it
    asks others that do not answer.
    """

    names: tuple[str, ...] = ()
    deadline: float = math.inf
    """In seconds of `time.monotonic`."""

    @classmethod
    def waiting(cls, seconds: float, *names: str) -> Askers:
        """Servers that wait for `seconds` from now on."""
        return cls(names, time.monotonic() + seconds)

    def seconds(self) -> float | None:
        """How long the next call may take; None if nobody waits. Raises if there is no time left."""
        if self.deadline == math.inf:
            return None
        left = (self.deadline - time.monotonic()) / 2
        if left < SHORTEST_WAIT:
            raise Unreachable("the peers did not answer in time")
        return left

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
