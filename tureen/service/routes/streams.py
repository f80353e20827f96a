"""Routes of streams: create, list, show, drop, push, punctuate, and list rejected rows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.errors import KeyConflict, TooLarge, UnknownStream, nearest
from tureen.position import Pushed
from tureen.schema import Schema, name_key
from tureen.service import stream_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.bodies import PUSH_TYPES, XML, check_row_count, is_endless, parse_rows, read_row_body
from tureen.service.error_responses import encode_json
from tureen.service.recent_values import accepted_age
from tureen.service.routes.descriptions import describe_errors, describe_row_body, without_content
from tureen.service.routes.parameters import Admin, After, Limit, Reader, Writer
from tureen.service.routes.responses import encoded_response, hide_source_error, json_response, page
from tureen.soup.embedded import Soup
from tureen.soup.xml_pushing import BATCH_ROWS, BatchPushes
from tureen.stems.row_items import split_items
from tureen.stems.xml_items import READ_BYTES, ItemReader, read_xml

router = APIRouter(tags=["streams"])

IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=1_000)]


@router.post(
    "/v1/streams",
    status_code=201,
    response_model=shapes.StreamInfo,
    responses=describe_errors(409, 502),
    summary="Create a stream",
)
async def create_stream(caller: Writer, body: shapes.NewStream) -> Response:
    """Create a stream; a source can read whatever the server can, so it requires the scope `admin`."""
    source = None
    if body.source is not None:
        caller.require_scope("admin")
        source = body.source.model_dump()

    def create() -> dict[str, Any]:
        caller.soup.create_stream(
            body.name,
            body.schema_,
            time=body.time,
            retain=body.retain,
            clock=body.clock,
            source=source,
            query=body.query,
            unique=body.unique,
            lateness=body.lateness,
            punctuate=body.punctuate,
            key=body.key,
            item=body.item,
            if_not_exists=body.if_not_exists,
        )
        return find_stream(caller.soup, body.name)

    return json_response(visible_stream(caller, await asyncio.to_thread(create)), 201)


@router.get("/v1/streams", response_model=shapes.StreamList, responses=describe_errors(), summary="List streams")
async def list_streams(caller: Reader, request: Request, limit: Limit = 100, after: After = None) -> Response:
    """The streams, in order of creation."""

    def encode() -> bytes:
        page_streams, next_page = page(caller.soup.streams(), limit, after, lambda stream: str(stream["name"]))
        streams = [visible_stream(caller, stream) for stream in page_streams]
        return encode_json({"streams": streams, "next": next_page})

    key = ("streams", caller.has_scope("admin"), limit, after)
    listing = caller.service.recent.get(key, accepted_age(request.headers), partial(asyncio.to_thread, encode))
    return encoded_response(await listing)


@router.get(
    "/v1/streams/{name}", response_model=shapes.StreamInfo, responses=describe_errors(404), summary="Show a stream"
)
async def show_stream(caller: Reader, name: str) -> Response:
    """A stream, by its name."""
    return json_response(visible_stream(caller, await asyncio.to_thread(find_stream, caller.soup, name)))


@router.delete("/v1/streams/{name}", summary="Drop a stream", **without_content(404))
async def drop_stream(caller: Admin, name: str) -> Response:
    """Drop a stream, its tuples, and the queries over it."""
    await asyncio.to_thread(caller.soup.drop_stream, name)
    return Response(status_code=204)


@router.post(
    "/v1/streams/{name}/rows",
    status_code=202,
    response_model=shapes.PushReceipt,
    responses=describe_errors(404, 409, 429),
    openapi_extra=describe_row_body(xml=True),
    summary="Push rows",
)
async def push_rows(
    caller: Writer,
    name: str,
    request: Request,
    key: IdempotencyKey = None,
    batch: Annotated[int, Query(ge=1, le=1_000_000, description="the rows per batch of a stream of XML")] = BATCH_ROWS,
) -> Response:
    """Add rows to a stream: all of them or none, durable when the response is sent.

    XML without a Content-Length is a stream: it is added in batches, each as soon as its items are complete.
    """
    if is_endless(request):
        return await _push_stream(caller, name, request, key, batch)
    media_type, body = await read_row_body(request, PUSH_TYPES)
    service, soup = caller.service, caller.soup

    def push() -> tuple[Pushed, int]:
        if media_type == XML:
            rows = read_xml(_schema_of(soup, name), find_stream(soup, name)["item"], body, "the body")
            check_row_count(rows.num_rows, service.settings.max_push_rows)
        else:
            rows = parse_rows(media_type, body, lambda: _schema_of(soup, name), service.settings)
        count = rows.num_rows if isinstance(rows, pa.Table) else len(split_items(rows)[0])
        with _scoped(caller, key) as scoped_key:
            return soup.push(name, rows, key=scoped_key), count

    position, count = await asyncio.to_thread(push)
    service.metrics.rows.inc(position.added)
    service.metrics.rejected.inc(0 if position.repeated else position.rejected)
    service.metrics.bytes.inc(len(body))
    service.record_push(position)
    return _receipt(position, count)


async def _push_stream(caller: Caller, name: str, request: Request, key: str | None, batch: int) -> Response:
    """Push a stream of XML in batches while it is received."""
    service, soup = caller.service, caller.soup

    def push_batch(rows: pa.Table, *, key: str | None, punctuations: Iterable[Any] = ()) -> Pushed:
        with _scoped(caller, key) as scoped_key:
            position = soup.push(name, rows, key=scoped_key, punctuations=punctuations)
        service.metrics.rows.inc(position.added)
        service.metrics.rejected.inc(0 if position.repeated else position.rejected)
        service.record_push(position)
        return position

    def prepare() -> tuple[Schema, ItemReader]:
        schema = _schema_of(soup, name)
        return schema, ItemReader(schema, find_stream(soup, name)["item"], "the body")

    def push(data: bytes) -> None:
        service.metrics.bytes.inc(len(data))
        for start in range(0, len(data), READ_BYTES):
            reader.feed(data[start : start + READ_BYTES])
            while reader.count >= batch:
                pushes.add(reader.take(batch))
            _check_batch_bytes(reader.bytes_held, service.settings.max_batch_bytes)

    def push_rest() -> Pushed:
        reader.close()
        while reader.count:
            pushes.add(reader.take(batch))
        return pushes.finish(schema)

    if batch > service.settings.max_push_rows:
        raise TooLarge(f"?batch= must be at most {service.settings.max_push_rows:,}, got {batch:,}", hint=_BATCH_HINT)
    loop, pushes = asyncio.get_running_loop(), BatchPushes(push_batch, key)
    # One thread, because a reader is used by the thread that created it.
    with (
        service.xml_streams.hold(caller.principal),
        ThreadPoolExecutor(1, "tureen-xml") as thread,
        pushes.reported(),
    ):
        schema, reader = await loop.run_in_executor(thread, prepare)
        async for data in request.stream():
            await loop.run_in_executor(thread, push, data)
        position = await loop.run_in_executor(thread, push_rest)
    return _receipt(position, pushes.rows)


_BATCH_HINT = "send the stream with a smaller ?batch=, the number of items per batch"


def _check_batch_bytes(held: int, limit: int) -> None:
    """Raise if the items that wait for the end of their batch, and the one that is incomplete, are too long."""
    if held > limit:
        raise TooLarge(
            f"a batch of a stream of XML may have at most {limit:,} bytes",
            hint=_BATCH_HINT,
        )


def _receipt(position: Pushed, count: int) -> Response:
    receipt = {"position": str(position), "rows": count, "added": position.added, "rejected": position.rejected}
    return json_response(receipt, 202)


@router.post(
    "/v1/streams/{name}/punctuations",
    status_code=202,
    response_model=shapes.PunctuationReceipt,
    responses=describe_errors(404, 409),
    summary="Punctuate a stream",
)
async def punctuate_stream(
    caller: Writer, name: str, body: shapes.NewPunctuation, key: IdempotencyKey = None
) -> Response:
    """Promise that no later tuple of a stream matches a pattern; later rows that match are rejected."""

    def punctuate() -> Pushed:
        with _scoped(caller, key) as scoped_key:
            return caller.soup.punctuate(name, body.where, key=scoped_key)

    position = await asyncio.to_thread(punctuate)
    return json_response({"position": str(position)}, 202)


@contextmanager
def _scoped(caller: Caller, key: str | None) -> Iterator[str | None]:
    """A key that is scoped to its principal, so that nobody can discover or occupy another's."""
    scoped_key = None if key is None else f"{caller.principal}/{key}"
    try:
        yield scoped_key
    except KeyConflict as conflict:
        conflict.message = conflict.message.replace(f"'{scoped_key}'", f"'{key}'")
        raise


@router.get(
    "/v1/streams/{name}/rejected",
    response_model=shapes.RejectedRowList,
    responses=describe_errors(404),
    summary="List rejected rows",
)
async def rejected_rows(caller: Reader, name: str, limit: Limit = 100, after: After = None) -> Response:
    """The rejected rows of a stream with the reasons, oldest first."""
    rejected = await asyncio.to_thread(caller.soup.rejected, name)
    start = int(after) if after is not None and after.isdecimal() else 0
    next_page = str(start + limit) if start + limit < len(rejected) else None
    return json_response({"rejected": rejected[start : start + limit], "next": next_page})


def find_stream(soup: Soup, name: str) -> dict[str, Any]:
    """The JSON object of a stream."""
    streams = soup.streams()
    stream = next((stream for stream in streams if name_key(stream["name"]) == name_key(name)), None)
    if stream is None:
        hint = nearest(name, [stream["name"] for stream in streams])
        raise UnknownStream(f"there is no stream named '{name}'", hint=hint)
    return stream


def _schema_of(soup: Soup, name: str) -> Schema:
    stream = find_stream(soup, name)
    return Schema.parse(stream["schema"], stream["time"])


def visible_stream(caller: Caller, stream: dict[str, Any]) -> dict[str, Any]:
    """A stream, for callers other than admins without its source's options, which may contain passwords."""
    if stream.get("source") and not caller.has_scope("admin"):
        error = hide_source_error(stream["error"])
        return {**stream, "source": {"format": stream["source"]["format"]}, "error": error}
    return stream
