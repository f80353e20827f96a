"""The flows that are being sent, how much was sent to each peer, and how much may be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from tureen.errors import TooMany
from tureen.federation.neighbour import FlowRequest
from tureen.federation.peer_quota import PeerQuota, SendingPace


@dataclass
class SentFlow:
    """A flow that a peer receives now."""

    peer: str
    request: FlowRequest
    rows: int = 0
    bytes: int = 0


@dataclass
class SentTotal:
    """What was sent to a peer since the server started."""

    flows: int = 0
    """The flows that it receives now."""
    rows: int = 0
    bytes: int = 0
    refused: int = 0
    """How often it asked for more flows than it may have."""


class SentFlows:
    """Counts what was sent since the server started, and refuses flows above the quota."""

    def __init__(self, quota: PeerQuota | None = None) -> None:
        """Nothing was sent yet."""
        self.quota = quota or PeerQuota()
        self.pace = SendingPace(self.quota.bytes_per_second)
        self._open: list[SentFlow] = []
        self._ended: dict[str, SentTotal] = {}
        self._lock = threading.Lock()

    def check(self, peer: str, count: int | None = None) -> None:
        """Raise if a peer that has `count` flows, by default those being sent to it, may not have one more."""
        with self._lock:
            self._check(peer, self._count(peer) if count is None else count)

    def _count(self, peer: str) -> int:
        return sum(flow.peer == peer for flow in self._open)

    def _check(self, peer: str, count: int) -> None:
        try:
            self.quota.check_flows(count)
        except TooMany:
            self._ended.setdefault(peer, SentTotal()).refused += 1
            raise

    @contextmanager
    def sending(self, peer: str, request: FlowRequest) -> Iterator[SentFlow]:
        """A flow that is sent in the block, which counts its rows and bytes."""
        flow = SentFlow(peer, request)
        with self._lock:
            self._check(peer, self._count(peer))
            self._open.append(flow)
        try:
            yield flow
        finally:
            with self._lock:
                self._open.remove(flow)
                total = self._ended.setdefault(peer, SentTotal())
                total.rows += flow.rows
                total.bytes += flow.bytes

    @property
    def open(self) -> list[SentFlow]:
        """The flows that are being sent."""
        with self._lock:
            return list(self._open)

    def totals(self) -> dict[str, SentTotal]:
        """What was sent to each peer."""
        with self._lock:
            totals = {peer: SentTotal(**asdict(total)) for peer, total in self._ended.items()}
            for flow in self._open:
                total = totals.setdefault(flow.peer, SentTotal())
                total.flows += 1
                total.rows += flow.rows
                total.bytes += flow.bytes
        return totals

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """What was sent to each peer, as a dict."""
        return {peer: asdict(total) for peer, total in self.totals().items()}
