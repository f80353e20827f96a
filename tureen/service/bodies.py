"""Bodies of requests: bounded, unpacked, and read as rows."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from tureen.errors import InvalidRows, InvalidSchema, TooLarge
from tureen.schema import Kind, Schema
from tureen.service.arrow_bodies import read_arrow
from tureen.service.error_responses import Refusal
from tureen.service.settings import Settings
from tureen.stems.csv_file import read_csv_bytes

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
CSV = "text/csv"
LINES = ("application/x-ndjson", "application/jsonl", "application/ndjson", "application/x-jsonlines")

ROW_TYPES = (JSON, *LINES, CSV, ARROW)
"""The media types that rows may come in."""

PLAIN_BYTES = 16 << 20
"""The most bytes of a body that has no rows; they are read in the loop, where all others wait."""

BODY_RATE = 16_384
"""A body gets a second more for each so many bytes that have come."""

UNPACKED_AT_ONCE = 4_096
"""A part of no more bytes is unpacked in the loop: a thousandfold of it takes about as long as going to a thread."""

_WITH_ROWS = ("rows", "tables", "templates")

_GZIP = zlib.MAX_WBITS | 16


def bounded(receive: Receive, scope: Scope, settings: Settings) -> Receive:
    """The same body, refused where it is too large, and unpacked where it is packed."""
    headers, rows = Headers(scope=scope), scope["path"].rpartition("/")[2] in _WITH_ROWS
    sent, unpacked = settings.max_body_bytes, settings.max_unpacked_bytes
    if not rows:
        sent, unpacked = min(sent, PLAIN_BYTES), min(unpacked, PLAIN_BYTES)
    packing = headers.get("content-encoding", "identity").strip().lower() or "identity"
    if packing not in ("identity", "gzip", "x-gzip"):
        raise Refusal(415, f"bodies packed by '{packing[:40]}' are not understood", hint="send it plain or as gzip")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > sent:
        raise _too_large("body", sent)
    if packing == "identity":
        return _Counted(receive, min(sent, unpacked), settings)
    return _Unpacked(_Counted(receive, sent, settings), unpacked)


def seconds_for(settings: Settings, sent: int) -> float:
    """How long a body of which so many bytes have come may have taken."""
    return settings.body_seconds + sent / BODY_RATE


class _Counted:
    """A body that may have so many bytes, and may take so long."""

    def __init__(self, receive: Receive, most: int, settings: Settings) -> None:
        self._receive, self._most, self._bytes = receive, most, 0
        self._settings, self._began, self._more = settings, time.monotonic(), True

    async def __call__(self) -> Message:
        if not self._more:
            # All of it is here: what comes now is that the client has gone.
            return await self._receive()
        left = self._began + seconds_for(self._settings, self._bytes) - time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow(self._settings) from None
        self._more = bool(message.get("more_body", False))
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._most:
                raise _too_large("body", self._most)
        return message


class _Unpacked:
    """A gzip body, unpacked as it comes, never by more than so many bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most, self._bytes = receive, most, 0
        self._gzip = zlib.decompressobj(_GZIP)
        self._began = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        more = bool(message.get("more_body", False))
        packed = message.get("body", b"")
        if len(packed) <= UNPACKED_AT_ONCE:
            plain = self._unpack(packed)
        else:
            plain = await asyncio.to_thread(self._unpack, packed)
        if not more and self._began and not self._gzip.eof:
            raise Refusal(400, "the gzip body ends too early")
        return {"type": "http.request", "body": plain, "more_body": more}

    def _unpack(self, packed: bytes) -> bytes:
        parts = []
        while packed:
            self._began = True
            if self._gzip.eof:
                # Several gzip files in a row are one.
                self._gzip = zlib.decompressobj(_GZIP)
            try:
                part = self._gzip.decompress(packed, self._most - self._bytes + 1)
            except zlib.error:
                raise Refusal(400, "the body is not gzip, as its Content-Encoding says") from None
            self._bytes += len(part)
            if self._bytes > self._most:
                raise _too_large("unpacked body", self._most)
            parts.append(part)
            packed = self._gzip.unused_data or self._gzip.unconsumed_tail
        return b"".join(parts)


def _too_large(what: str, most: int) -> Refusal:
    return Refusal(413, f"the {what} has more than {most:,} bytes", hint="send less at a time")


def _too_slow(settings: Settings) -> Refusal:
    # What is left of the body would be taken for the next request.
    headers = {"Connection": "close"}
    return Refusal(408, f"the body was not sent within {settings.body_seconds:g} seconds", headers=headers)


def media_type(request: Request) -> str:
    """The media type of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_rows(request: Request) -> tuple[str, bytes]:
    """The media type and the bytes of a body with rows."""
    kind = media_type(request)
    if kind not in ROW_TYPES:
        raise Refusal(415, f"rows do not come as '{kind[:80]}'", hint=f"send one of {', '.join(ROW_TYPES)}")
    return kind, await request.body()


def rows_of(
    kind: str, body: bytes, schema: Callable[[], Schema | None], settings: Settings, most: int | None = None
) -> Any:
    """The rows of a body, as a list of objects or as an Arrow table; at most so many, or as many as a push may have."""
    rows: Any
    most = settings.max_push_rows if most is None else most
    if kind == JSON or kind in LINES:
        rows = _objects(kind, body, schema, most, settings.max_json_bytes)
    elif kind == CSV:
        known = schema()
        if known is None:
            raise InvalidSchema("CSV does not say its types", hint="give them as ?schema=name TYPE, …")
        rows = read_csv_bytes(known, body, "the body")
    else:
        rows = read_arrow(body, settings.max_unpacked_bytes)
    count = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
    if count > most:
        raise TooLarge(f"{count:,} rows at a time", hint=f"send at most {most:,}")
    return rows


def _objects(kind: str, body: bytes, schema: Callable[[], Schema | None], most: int, most_json: int) -> list[Any]:
    if len(body) > most_json:
        raise TooLarge(f"{len(body):,} bytes of JSON", hint=f"send at most {most_json:,}, or send Arrow or CSV")
    # Every row has a brace. Counting them is quick; making millions of objects is not, and everybody waits for it.
    if body.count(b"{") > 2 * most:
        raise TooLarge(f"more than {most:,} rows at a time", hint=f"send at most {most:,}")
    known = schema()
    exact = known is not None and any(column.type.kind is Kind.DECIMAL for column in known.columns)
    loads = _exactly if exact else orjson.loads
    return _json(body, loads) if kind == JSON else _lines(body, loads)


def _exactly(text: bytes) -> Any:
    """JSON with its numbers as they are written: a double would change some that a DECIMAL holds."""
    return json.loads(text, parse_float=Decimal, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _json(body: bytes, loads: Callable[[bytes], Any]) -> list[Any]:
    try:
        found = loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRows("the body is not JSON", detail=str(error)) from None
    if not isinstance(found, list):
        raise InvalidRows("the body is no array", hint="one row is an array with one object")
    return found


def _lines(body: bytes, loads: Callable[[bytes], Any]) -> list[Any]:
    """One JSON value on each line; read at once, and line by line where that does not go well."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    try:
        found: list[Any] = loads(b"[" + b",".join(lines) + b"]")
        if len(found) == len(lines):
            return found
    except (ValueError, RecursionError):
        pass
    rows = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(loads(line))
            except (ValueError, RecursionError) as error:
                raise InvalidRows(f"line {number} is not JSON", detail=str(error)) from None
    return rows
