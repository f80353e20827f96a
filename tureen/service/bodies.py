"""Request bodies: size and time limits, gzip decompression, and parsing into rows."""

from __future__ import annotations

import asyncio
import json
import re
import time
import zlib
from collections.abc import Callable, Sequence
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
from tureen.service.error_responses import HttpError
from tureen.service.settings import Settings
from tureen.stems.csv_file import read_csv_bytes

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
CSV = "text/csv"
XML = "application/xml"
LINES = ("application/x-ndjson", "application/jsonl", "application/ndjson", "application/x-jsonlines")

ROW_TYPES = (JSON, *LINES, CSV, ARROW)
"""The media types of bodies with rows."""

PUSH_TYPES = (*ROW_TYPES, XML)
"""The media types of bodies with rows of a stream."""

MAX_PLAIN_BYTES = 16 << 20
"""The size limit of a body without rows. Such bodies are parsed in the event loop, where they delay all requests."""

BYTES_PER_SECOND = 16_384
"""The least rate of a body: each of this many received bytes extends its deadline by a second."""

INLINE_GZIP_BYTES = 4_096
"""Chunks up to this size are decompressed in the event loop: that takes no longer than passing them to a thread."""

_PATHS_WITH_ROWS = ("rows", "tables", "templates")

_GZIP = zlib.MAX_WBITS | 16
_ROWS_PATH = re.compile(r"/v1/streams/[^/]+/rows")


def limit_body(receive: Receive, scope: Scope, settings: Settings) -> Receive:
    """Wrap a request's body: enforce its limits, and decompress it if it is gzip."""
    headers = Headers(scope=scope)
    max_sent, max_decompressed = settings.max_body_bytes, settings.max_unpacked_bytes
    if scope["path"].rpartition("/")[2] not in _PATHS_WITH_ROWS:
        max_sent, max_decompressed = min(max_sent, MAX_PLAIN_BYTES), min(max_decompressed, MAX_PLAIN_BYTES)
    encoding = headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise HttpError(415, f"Content-Encoding must be gzip or identity, got '{encoding[:40]}'")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > max_sent:
        raise _too_large("body", max_sent)
    if _is_endless(scope):
        endless = _TimedBody(receive, settings)
        return endless if encoding == "identity" else _GzipBody(endless, 1 << 62)
    if encoding == "identity":
        return _LimitedBody(receive, min(max_sent, max_decompressed), settings)
    return _GzipBody(_LimitedBody(receive, max_sent, settings), max_decompressed)


def is_endless(request: Request) -> bool:
    """Whether a body is a stream of XML, which is taken while it is received and may never end."""
    return _is_endless(request.scope)


def _is_endless(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_push = scope["method"] == "POST" and _ROWS_PATH.fullmatch(scope["path"]) is not None
    return media_type == XML and "content-length" not in headers and is_push


def seconds_for(settings: Settings, received: int) -> float:
    """The time limit of a body of which `received` bytes have arrived."""
    return settings.body_seconds + received / BYTES_PER_SECOND


class _LimitedBody:
    """A body with a limit on its size and on the time it takes to arrive."""

    def __init__(self, receive: Receive, max_bytes: int, settings: Settings) -> None:
        self._receive, self._max_bytes, self._bytes = receive, max_bytes, 0
        self._settings, self._started_at, self._more = settings, time.monotonic(), True

    async def __call__(self) -> Message:
        if not self._more:
            # The body is complete: the next message is the client's disconnect.
            return await self._receive()
        remaining = self._started_at + seconds_for(self._settings, self._bytes) - time.monotonic()
        try:
            async with asyncio.timeout(remaining):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow(self._settings) from None
        self._more = bool(message.get("more_body", False))
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._max_bytes:
                raise _too_large("body", self._max_bytes)
        return message


class _TimedBody:
    """A body without an end, with a limit on the time between its parts."""

    def __init__(self, receive: Receive, settings: Settings) -> None:
        self._receive, self._settings, self._more = receive, settings, True

    async def __call__(self) -> Message:
        if not self._more:
            return await self._receive()
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow(self._settings) from None
        self._more = bool(message.get("more_body", False))
        return message


class _GzipBody:
    """A gzip body, decompressed chunk by chunk, with a limit on its decompressed size."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive, self._max_bytes, self._bytes = receive, max_bytes, 0
        self._gzip = zlib.decompressobj(_GZIP)
        self._has_data = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request":
            return message
        more = bool(message.get("more_body", False))
        compressed = message.get("body", b"")
        if len(compressed) <= INLINE_GZIP_BYTES:
            plain = self._decompress(compressed)
        else:
            plain = await asyncio.to_thread(self._decompress, compressed)
        if not more and self._has_data and not self._gzip.eof:
            raise HttpError(400, "the gzip body is truncated")
        return {"type": "http.request", "body": plain, "more_body": more}

    def _decompress(self, compressed: bytes) -> bytes:
        parts = []
        while compressed:
            self._has_data = True
            if self._gzip.eof:
                # A gzip file may have several members.
                self._gzip = zlib.decompressobj(_GZIP)
            try:
                part = self._gzip.decompress(compressed, self._max_bytes - self._bytes + 1)
            except zlib.error:
                raise HttpError(400, "the body is not valid gzip") from None
            self._bytes += len(part)
            if self._bytes > self._max_bytes:
                raise _too_large("decompressed body", self._max_bytes)
            parts.append(part)
            compressed = self._gzip.unused_data or self._gzip.unconsumed_tail
        return b"".join(parts)


def _too_large(subject: str, max_bytes: int) -> HttpError:
    return HttpError(413, f"the {subject} has more than {max_bytes:,} bytes", hint="send less per request")


def _too_slow(settings: Settings) -> HttpError:
    # The rest of the body would be parsed as the next request.
    headers = {"Connection": "close"}
    return HttpError(408, f"the body was not sent within {settings.body_seconds:g} seconds", headers=headers)


def media_type_of(request: Request) -> str:
    """The media type of a request's body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_row_body(request: Request, types: Sequence[str] = ROW_TYPES) -> tuple[str, bytes]:
    """The media type and the bytes of a body with rows."""
    media_type = media_type_of(request)
    if media_type not in types:
        raise HttpError(
            415, f"unsupported Content-Type for rows: '{media_type[:80]}'", hint=f"send one of {', '.join(types)}"
        )
    return media_type, await request.body()


def parse_rows(
    media_type: str,
    body: bytes,
    schema: Callable[[], Schema | None],
    settings: Settings,
    max_rows: int | None = None,
) -> Any:
    """The rows of a body, as a list of objects or an Arrow table; without `max_rows`, the limit is that of a push."""
    rows: Any
    max_rows = settings.max_push_rows if max_rows is None else max_rows
    if media_type == JSON or media_type in LINES:
        rows = _parse_json_rows(media_type, body, schema, max_rows, settings.max_json_bytes)
    elif media_type == CSV:
        known = schema()
        if known is None:
            raise InvalidSchema("CSV rows need a schema", hint="add ?schema=name TYPE, …")
        rows = read_csv_bytes(known, body, "the body")
    else:
        rows = read_arrow(body, settings.max_unpacked_bytes)
    check_row_count(rows.num_rows if isinstance(rows, pa.Table) else len(rows), max_rows)
    return rows


def check_row_count(count: int, max_rows: int) -> None:
    """Raise if a request has too many rows."""
    if count > max_rows:
        raise TooLarge(f"a request may have at most {max_rows:,} rows, got {count:,}", hint="split the rows")


def _parse_json_rows(
    media_type: str, body: bytes, schema: Callable[[], Schema | None], max_rows: int, max_bytes: int
) -> list[Any]:
    if len(body) > max_bytes:
        raise TooLarge(
            f"rows as JSON may have at most {max_bytes:,} bytes, got {len(body):,}",
            hint="split them, or send Arrow or CSV",
        )
    # Every row has a brace. Counting braces is quick; creating millions of objects delays all requests.
    if body.count(b"{") > 2 * max_rows:
        raise TooLarge(f"a request may have at most {max_rows:,} rows", hint="split the rows")
    known = schema()
    has_decimals = known is not None and any(column.type.kind is Kind.DECIMAL for column in known.columns)
    loads = _loads_exact if has_decimals else orjson.loads
    return _parse_array(body, loads) if media_type == JSON else _parse_lines(body, loads)


def _loads_exact(text: bytes) -> Any:
    """Parse JSON with numbers as Decimal: a double would change numbers that a DECIMAL column can hold."""
    return json.loads(text, parse_float=Decimal, parse_constant=_reject_constant)


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is not valid JSON")


def _parse_array(body: bytes, loads: Callable[[bytes], Any]) -> list[Any]:
    try:
        rows = loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRows("the body is not valid JSON", detail=str(error)) from None
    if not isinstance(rows, list):
        raise InvalidRows("the body must be a JSON array", hint="send a single row as an array with one object")
    return rows


def _parse_lines(body: bytes, loads: Callable[[bytes], Any]) -> list[Any]:
    """Parse one JSON value per line: all lines as one array, or line by line if that fails."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    try:
        rows: list[Any] = loads(b"[" + b",".join(lines) + b"]")
        if len(rows) == len(lines):
            return rows
    except (ValueError, RecursionError):
        pass
    rows = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(loads(line))
            except (ValueError, RecursionError) as error:
                raise InvalidRows(f"line {number} is not valid JSON", detail=str(error)) from None
    return rows
