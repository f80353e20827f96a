"""The flows that are being sent, and how much was sent to each peer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tureen.federation.neighbour import FlowRequest


@dataclass
class SentFlow:
    """A flow that a peer receives now."""

    peer: str
    request: FlowRequest
    rows: int = 0
    bytes: int = 0


class SentFlows:
    """Counts what is sent since the server started."""

    def __init__(self) -> None:
        """Nothing was sent yet."""
        self._open: list[SentFlow] = []
        self._ended: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def sending(self, peer: str, request: FlowRequest) -> Iterator[SentFlow]:
        """A flow that is sent in the block, which counts its rows and bytes."""
        flow = SentFlow(peer, request)
        with self._lock:
            self._open.append(flow)
        try:
            yield flow
        finally:
            with self._lock:
                self._open.remove(flow)
                rows, size = self._ended.get(peer, (0, 0))
                self._ended[peer] = (rows + flow.rows, size + flow.bytes)

    @property
    def open(self) -> list[SentFlow]:
        """The flows that are being sent."""
        with self._lock:
            return list(self._open)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The rows and bytes that were sent to each peer, and the number of its flows."""
        with self._lock:
            totals = {peer: {"flows": 0, "rows": rows, "bytes": size} for peer, (rows, size) in self._ended.items()}
            for flow in self._open:
                total = totals.setdefault(flow.peer, {"flows": 0, "rows": 0, "bytes": 0})
                total["flows"] += 1
                total["rows"] += flow.rows
                total["bytes"] += flow.bytes
        return totals
