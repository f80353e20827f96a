"""Quotas of peers: how many flows one may have, and how many bytes are sent to it per second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tureen.errors import TooMany


@dataclass(frozen=True)
class PeerQuota:
    """What one peer may use of this server."""

    flows: int = 1_000
    """The most flows that are sent to it at a time, and that are kept for it."""
    bytes_per_second: float = 1e9

    def check_flows(self, count: int) -> None:
        """Raise if a peer that has some flows asks for one more."""
        if count >= self.flows:
            raise TooMany(
                f"a peer may have at most {self.flows:,} flows at a time",
                hint="unregister queries, or ask the other server for a higher max_peer_flows",
            )


class SendingPace:
    """How long the flows of a peer pause so that it gets no more bytes per second than it may."""

    def __init__(self, bytes_per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow each peer that many bytes per second; the bytes of one second are sent without a pause."""
        self._bytes_per_second, self._clock = bytes_per_second, clock
        self._free_at: dict[str, float] = {}
        """When all bytes of a peer may have been sent."""
        self._lock = threading.Lock()

    def pause(self, peer: str, size: int) -> float:
        """The seconds to wait after some bytes were sent to a peer, before the next."""
        with self._lock:
            now = self._clock()
            free_at = max(self._free_at.get(peer, now - 1.0), now - 1.0) + size / self._bytes_per_second
            self._free_at[peer] = free_at
        return max(0.0, free_at - now)
