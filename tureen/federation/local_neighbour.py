"""A server as a neighbour in the same process: for links from one replica to another, and for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tureen.errors import TureenError, UnknownStream
from tureen.federation.flow_reader import FlowReader
from tureen.federation.flow_serving import FlowServing
from tureen.federation.frame import FlowFrame, decode_frames, encode_frame
from tureen.federation.neighbour import HEARTBEAT, FlowRequest, PeerInfo


class LocalNeighbour:
    """Calls what another server would call over HTTP."""

    def __init__(self, serving: FlowServing, peer: str | None, wait: Callable[[], bool] | None = None) -> None:
        """Call as that peer; None is the server itself.

        Between frames, `wait` is called, and the flow ends when it returns False. Without it, the flow ends when there
        is nothing more at the moment.
        """
        self._serving, self._peer, self._wait = serving, peer, wait

    def info(self, seconds: float | None = None) -> PeerInfo:  # noqa: ARG002 - as over HTTP
        """The description that the server gives this peer."""
        return self._serving.info(self._peer)

    @contextmanager
    def frames(self, request: FlowRequest, schema: pa.Schema) -> Iterator[Iterator[FlowFrame]]:
        """The frames of a flow."""
        yield decode_frames(self._encoded(request), schema, lambda error: TureenError(str(error["message"])))

    def _encoded(self, request: FlowRequest) -> Iterator[bytes]:
        reader = self._serving.reader(self._peer, request)
        while True:
            if self._peer is not None and not self._serving.is_shared(self._peer, request.origin):
                raise UnknownStream("the stream is not shared any more")
            frames = reader.read()
            yield from map(encode_frame, frames)
            if frames[-1].current and not self._wait_for(reader):
                return

    def _wait_for(self, reader: FlowReader) -> bool:
        """Wait until there may be more to read, or a heartbeat is due; False at the end of the flow."""
        if self._wait is None:
            return False
        deadline = time.monotonic() + HEARTBEAT / 2
        while self._wait():
            if reader.has_news() or time.monotonic() > deadline:
                return True
        return False

    def marks(self, position: str, seconds: float) -> dict[str, int]:  # noqa: ARG002 - as over HTTP
        """The next tuple ids now: what was pushed before is stored."""
        return self._serving.next_ids(self._peer)

    def request(self, method: str, path: str, body: Any = None, seconds: float | None = None) -> Any:
        """Call the function that answers a route; what is sent and returned is copied, as JSON."""
        if self._peer is None:
            raise UnknownStream(f"there is no route {method} {path}")
        received = json.loads(json.dumps(body))
        return json.loads(json.dumps(self._serving.requests(self._peer, method, path, received, seconds)))

    def close(self) -> None:
        """Nothing to close."""
