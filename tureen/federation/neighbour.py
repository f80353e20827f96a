"""A peer as this server calls it: over HTTP, or in the same process in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol

import pyarrow as pa

from tureen.arguments import check_name
from tureen.closed.declaring import check_rules
from tureen.closed.rules import Rules
from tureen.errors import PeerFailed, TureenError
from tureen.federation.frame import FlowFrame
from tureen.pot.peers import Peer
from tureen.schema import Schema

NETWORK_PATH, SAMPLE_PATH, FLOWS_PATH = (f"/v1/federation/{name}" for name in ("network", "sample", "flows"))
"""The routes that peers call when they plan; see `tureen.federation.peer_requests`."""

HEARTBEAT = 1.0
"""The seconds without rows after which a sender sends a frame as a heartbeat."""


@dataclass(frozen=True)
class SharedStream:
    """A stream that a peer shares with this server, as the peer describes it."""

    name: str
    schema: str
    time: str | None
    clock: str
    retain: int | None
    item: str | None
    origin: str
    """Its identity in the network: the pot of its home, and its number there."""
    home: str
    """The name of the server where it lives."""
    rules: Rules | None = None
    """Its unique key and its lateness; None if the peer is of a version that does not send punctuations."""

    @property
    def parsed(self) -> Schema:
        """Its columns."""
        return Schema.parse(self.schema, self.time)


@dataclass(frozen=True)
class PeerInfo:
    """The description that a peer gives of itself."""

    name: str
    pot: str
    streams: tuple[SharedStream, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The content of a response. What streams declare is apart: version 0.7 refuses descriptions with more."""
        return {
            "name": self.name,
            "pot": self.pot,
            "streams": [_description(stream) for stream in self.streams],
            "rules": {stream.origin: _rules_json(stream.rules) for stream in self.streams if stream.rules is not None},
        }

    @classmethod
    def from_json(cls, content: Any) -> PeerInfo:
        """Read what `as_json` returns; raises PeerFailed for anything else."""
        try:
            rules = content.get("rules", {})
            streams = tuple(_shared_stream(entry, rules) for entry in content["streams"])
            return cls(str(content["name"]), str(content["pot"]), streams)
        except (AttributeError, KeyError, TypeError, ValueError, TureenError) as error:
            raise PeerFailed("the peer's description of itself is not valid", detail=str(error)[:200]) from error


def _description(stream: SharedStream) -> dict[str, Any]:
    return {name: value for name, value in asdict(stream).items() if name != "rules"}


def _rules_json(rules: Rules) -> dict[str, Any]:
    return {"unique": list(rules.unique), "lateness": rules.lateness}


def _shared_stream(entry: dict[str, Any], rules: dict[str, Any]) -> SharedStream:
    # A later version may tell more about a stream.
    stream = SharedStream(**{field.name: entry[field.name] for field in fields(SharedStream) if field.name != "rules"})
    declared = rules.get(stream.origin)
    if declared is not None:
        checked = check_rules(stream.parsed, declared["unique"] or None, declared["lateness"])
        stream = replace(stream, rules=checked)
    check_name(stream.name, "stream")
    assert stream.parsed
    texts = (stream.origin, stream.home, stream.clock)
    if not all(isinstance(text, str) and text for text in texts) or stream.clock not in ("wall", "stream"):
        raise ValueError(f"stream '{stream.name}'")
    if stream.retain is not None and not isinstance(stream.retain, int):
        raise ValueError(f"retention of stream '{stream.name}'")
    return stream


@dataclass(frozen=True)
class FlowRequest:
    """What a peer is asked for: a flow, from a tuple id of the home on."""

    flow: str
    origin: str
    """The stream that is meant: another one may have got its name."""
    after: int
    punctuations: int | None = None
    """The tuple id from which on punctuations are sent, `after` or 0; None for none of them."""


class Neighbour(Protocol):
    """A connection to a peer."""

    def info(self, seconds: float | None = None) -> PeerInfo:
        """The description that the peer gives of itself and of what it shares, if it answers within `seconds`."""
        ...

    def frames(self, request: FlowRequest, schema: pa.Schema) -> AbstractContextManager[Iterator[FlowFrame]]:
        """The frames of a flow, whose rows have that schema; endless, with one at least every `HEARTBEAT` seconds."""
        ...

    def marks(self, position: str, seconds: float) -> dict[str, int]:
        """The next tuple id of each stream that lives there and is shared, once a position of the peer is reached."""
        ...

    def request(self, method: str, path: str, body: Any = None, seconds: float | None = None) -> Any:
        """Send JSON to a route below /v1/federation, and return the JSON of the response.

        The peer is told for how many seconds this server waits.
        """
        ...

    def close(self) -> None:
        """Close the connection; what waits for frames ends."""
        ...


Connect = Callable[[Peer], Neighbour]
