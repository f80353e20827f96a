"""A peer over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tureen.client.remote_errors import error_from
from tureen.client.transport import AttemptFailed, Request, Transport
from tureen.errors import PeerFailed, TureenError, Unreachable
from tureen.federation.frame import MEDIA_TYPE, FlowFrame, decode_frames
from tureen.federation.neighbour import HEARTBEAT, FlowRequest, PeerInfo
from tureen.pot.peers import Peer

ANSWER_SECONDS = 15.0
"""The most seconds without a byte of a peer's response."""

RETRY_WITHIN = 0.1
"""A request that fails as fast is sent once more."""

LARGEST_RESPONSE = 1 << 26
"""The most bytes of a response that is not a flow."""

FLOW_PATH, INFO_PATH, MARKS_PATH = "/v1/federation/flow", "/v1/federation", "/v1/federation/marks"


class HttpNeighbour:
    """The connections to one peer; see `tureen.federation.neighbour.Neighbour`."""

    def __init__(self, peer: Peer) -> None:
        """Prepare connections; nothing is sent yet."""
        self._transport = Transport(peer.url, peer.token, timeout=ANSWER_SECONDS, patience=0.0, ca=peer.ca)

    def info(self, seconds: float | None = None) -> PeerInfo:
        """The description that the peer gives of itself and of what it shares, if it answers within `seconds`."""
        return PeerInfo.from_json(self.request("GET", INFO_PATH, seconds=seconds))

    @contextmanager
    def frames(self, request: FlowRequest, schema: pa.Schema) -> Iterator[Iterator[FlowFrame]]:
        """The frames of a flow."""
        params = {"flow": request.flow, "origin": request.origin, "after": request.after}
        if request.punctuations is not None:
            params["punctuations"] = request.punctuations
        call = Request("GET", FLOW_PATH, params, headers={"Accept": MEDIA_TYPE, "Accept-Encoding": "identity"})
        try:
            with self._transport.stream(call, silence=ANSWER_SECONDS + HEARTBEAT) as response:
                if response.headers.get("Content-Type", "").partition(";")[0] != MEDIA_TYPE:
                    raise PeerFailed(
                        "the peer does not send flows", hint="check that its URL is that of a Tureen server"
                    )
                yield decode_frames(response.iter_raw(), schema, _error)
        except AttemptFailed as failed:
            raise failed.error from failed

    def marks(self, position: str, seconds: float) -> dict[str, int]:
        """The next tuple id of each stream that lives there and is shared, once a position of the peer is reached."""
        params = {"position": position, "timeout": seconds}
        marks = self._transport.send(Request("GET", MARKS_PATH, params, waits=seconds)).json()
        try:
            return {str(origin): int(next_id) for origin, next_id in marks["streams"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise PeerFailed("the response of the peer is not valid") from None

    def request(self, method: str, path: str, body: Any = None, seconds: float | None = None) -> Any:
        """Send JSON to a route, and return the JSON of the response; None if it has no content."""
        headers = {} if seconds is None else {"Prefer": f"wait={seconds:.3f}"}
        request, began = Request(method, path, json=body, headers=headers), time.monotonic()
        try:
            content = self._read(request, seconds or ANSWER_SECONDS)
        except Unreachable:
            if time.monotonic() - began > RETRY_WITHIN:
                raise
            # The peer may have closed a connection that was not used for long. Requests can be repeated.
            content = self._read(request, seconds or ANSWER_SECONDS)
        if not content:
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise PeerFailed("the response of the peer is not JSON") from None

    def _read(self, request: Request, seconds: float) -> bytes:
        """The content of a response, which is bounded in size and time: a peer may send without end."""
        deadline, content = time.monotonic() + seconds, bytearray()
        try:
            with self._transport.stream(request, silence=seconds) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > LARGEST_RESPONSE:
                        raise PeerFailed("the response of the peer is larger than allowed")
                    if time.monotonic() > deadline:
                        raise Unreachable(f"no complete answer from {self._transport.url} in time")
        except AttemptFailed as failed:
            raise failed.error from failed
        return bytes(content)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def _error(content: dict[str, object]) -> TureenError:
    try:
        return error_from(content)
    except (KeyError, TypeError, ValueError):
        return PeerFailed("a frame is not valid")
