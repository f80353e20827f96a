"""JSON bodies of the routes of peers: those that admins list, and those by which servers plan together."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from tureen.service.body_shapes import Name, RequestBody, ResponseBody, Text

MAX_NAMES, MAX_FLOWS = 64, 65_536


class NewPeer(RequestBody):
    """A server to receive streams from."""

    name: Name
    url: Text
    token: Text | None = None
    ca: Text | None = None


class PeerEntry(ResponseBody):
    """A peer, its state, and what is shared; `url` is null if this server only sends to it."""

    name: str
    url: str | None
    state: str
    since: datetime | None
    error: str | None
    offers: list[str]
    shared: list[str]
    flows: int
    kept: int
    refused: int
    bytes: int


class PeerList(ResponseBody):
    """A page of peers."""

    peers: list[PeerEntry]
    next: str | None


class SharedStreamInfo(ResponseBody):
    """A stream that is shared with the caller."""

    name: str
    schema_: Annotated[str, Field(alias="schema")]
    time: str | None
    clock: str
    retain: int | None
    item: str | None
    origin: str
    home: str


class PeerDescription(ResponseBody):
    """A server, as a peer sees it."""

    name: str
    pot: str
    streams: list[SharedStreamInfo]
    rules: dict[str, SharedRules]


class SharedRules(ResponseBody):
    """What a shared stream declares."""

    unique: list[str]
    lateness: int | None


class StreamMarks(ResponseBody):
    """The next tuple id of each stream, by the identity of the stream."""

    streams: dict[str, int]


class PeerRequest(RequestBody):
    """A request of a peer, which may be of a later version: fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


class StreamQuestion(PeerRequest):
    """What a peer asks about a stream: by its identity, and without the servers that wait for the answer."""

    origin: Text
    asked: Annotated[list[Name], Field(default_factory=list, max_length=MAX_NAMES)]


class NeededFlow(StreamQuestion):
    """A flow that a peer is going to receive, and what the servers before this one receive for it."""

    flow: Text
    hops: Annotated[list[list[Text]], Field(default_factory=list, max_length=MAX_NAMES)]
    """Of each: the server that receives, the one that sends, and the flow."""
    is_known: bool = False
    """Whether the caller has received the flow before, so that others may receive it from the caller."""


class FlowsInUse(PeerRequest):
    """All flows that a peer receives: pairs of the identity of a stream and a flow."""

    flows: Annotated[list[list[Text]], Field(max_length=MAX_FLOWS)]


class MissingFlows(ResponseBody):
    """The flows that a peer receives and that this server no longer has."""

    missing: list[list[str]]


class PeerReports(ResponseBody):
    """What servers receive of a stream."""

    peers: list[dict[str, Any]]


class SampleBody(ResponseBody):
    """The newest rows of a stream, as an Arrow stream in base64, and how many arrive."""

    rows_per_second: float
    rows: str
