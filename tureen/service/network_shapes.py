"""JSON bodies of the routes by which peers plan together, and of the network as people see it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tureen.service.body_shapes import Name, RequestBody, ResponseBody, Text

MAX_NAMES, MAX_FLOWS = 64, 65_536


class StreamQuestion(RequestBody):
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


class FlowsInUse(RequestBody):
    """All flows that a peer receives: pairs of the identity of a stream and a flow."""

    flows: Annotated[list[list[Text]], Field(max_length=MAX_FLOWS)]


class MissingFlows(ResponseBody):
    """The flows that a peer receives and that are not here any more."""

    missing: list[list[str]]


class PeerReports(ResponseBody):
    """What servers receive of a stream."""

    peers: list[dict[str, Any]]


class SampleBody(ResponseBody):
    """The newest rows of a stream, as an Arrow stream in base64, and how many arrive."""

    rows_per_second: float
    rows: str
