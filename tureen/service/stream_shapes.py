"""JSON bodies of the routes of streams."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from tureen.service.body_shapes import Name, RequestBody, ResponseBody, Text


class StreamSource(RequestBody):
    """The external source of a stream."""

    format: Text
    options: dict[str, str | int | float | bool] = Field(default={})


class NewStream(RequestBody):
    """A stream to create."""

    name: Name
    schema_: Annotated[Text | None, Field(alias="schema", examples=["sym STRING, price DOUBLE, ts TIMESTAMP"])] = None
    time: Name | None = None
    retain: Text | None = None
    clock: Literal["wall", "stream"] | None = None
    source: StreamSource | None = None
    query: Text | None = None
    unique: Annotated[list[Name], Field(min_length=1, max_length=100)] | None = None
    lateness: Text | None = None
    punctuate: Name | None = None
    key: Annotated[list[Name], Field(min_length=1, max_length=100)] | None = None
    item: Annotated[Text | None, Field(examples=["photons/photon"])] = None
    if_not_exists: bool = False


class StreamInfo(ResponseBody):
    """A stream."""

    name: str
    schema_: Annotated[str, Field(alias="schema")]
    time: str | None
    clock: str
    retain_seconds: float | None
    retain_needed: bool
    freed_before: str | None
    item: str | None
    source: dict[str, Any] | None
    home: str | None
    query: str | None
    unique: list[str] | None
    lateness_seconds: float | None
    punctuate: dict[str, Any] | None
    closed: dict[str, Any] | None
    error: str | None


class StreamList(ResponseBody):
    """A page of streams."""

    streams: list[StreamInfo]
    next: str | None


class PushReceipt(ResponseBody):
    """The receipt of a durable push; `added` is 0 if the push repeats an earlier one by its idempotency key."""

    position: str
    rows: int
    added: int
    rejected: int


class NewPunctuation(RequestBody):
    """A punctuation: by column a value, a list of values, or an object with `low` and `high`."""

    where: Annotated[dict[str, Any], Field(min_length=1, max_length=1_000, examples=[{"item": 180}])]


class PunctuationReceipt(ResponseBody):
    """The receipt of a durable punctuation."""

    position: str


class RejectedRow(ResponseBody):
    """A row that was rejected after its push."""

    rejected_at: datetime
    reason: str
    row: Any


class RejectedRowList(ResponseBody):
    """A page of rejected rows."""

    rejected: list[RejectedRow]
    next: str | None
