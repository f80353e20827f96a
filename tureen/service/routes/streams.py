"""Streams: made, listed, dropped, and pushed to."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Header
from starlette.requests import Request
from starlette.responses import Response

from tureen.errors import KeyConflict, UnknownStream, nearest
from tureen.position import Pushed
from tureen.schema import Schema, name_key
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.bodies import read_rows, rows_of
from tureen.service.routes.common import (
    Admin,
    After,
    Limit,
    Reader,
    Writer,
    page,
    problems,
    reply,
    rows_body,
    without_source_details,
)
from tureen.soup.embedded import Soup

router = APIRouter(tags=["streams"])


@router.post(
    "/v1/streams", status_code=201, response_model=shapes.Stream, responses=problems(409), summary="Create a stream"
)
async def create_stream(caller: Writer, wanted: shapes.NewStream) -> Response:
    """Make a stream; one with an outside source reads what the server can read, so that it needs an admin."""
    source = None
    if wanted.source is not None:
        caller.check("admin")
        source = wanted.source.model_dump()

    def create() -> dict[str, Any]:
        caller.soup.create_stream(
            wanted.name,
            wanted.schema_,
            time=wanted.time,
            retain=wanted.retain,
            clock=wanted.clock,
            source=source,
            if_not_exists=wanted.if_not_exists,
        )
        return find_stream(caller.soup, wanted.name)

    return reply(shown_stream(caller, await asyncio.to_thread(create)), 201)


@router.get("/v1/streams", response_model=shapes.Streams, responses=problems(), summary="List streams")
async def list_streams(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """The streams, in order of creation."""
    found = await asyncio.to_thread(caller.soup.streams)
    some, following = page(found, limit, after, lambda one: str(one["name"]))
    return reply({"streams": [shown_stream(caller, one) for one in some], "next": following})


@router.get("/v1/streams/{name}", response_model=shapes.Stream, responses=problems(404), summary="Show a stream")
async def show_stream(caller: Reader, name: str) -> Response:
    """One stream."""
    return reply(shown_stream(caller, await asyncio.to_thread(find_stream, caller.soup, name)))


@router.delete(
    "/v1/streams/{name}", status_code=204, response_class=Response, responses=problems(404), summary="Drop a stream"
)
async def drop_stream(caller: Admin, name: str) -> Response:
    """Remove a stream, its tuples, and the queries over it."""
    await asyncio.to_thread(caller.soup.drop_stream, name)
    return Response(status_code=204)


@router.post(
    "/v1/streams/{name}/rows",
    status_code=202,
    response_model=shapes.Pushed,
    responses=problems(404, 409),
    openapi_extra=rows_body(),
    summary="Push rows",
)
async def push_rows(
    caller: Writer,
    name: str,
    request: Request,
    key: Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=1_000)] = None,
) -> Response:
    """Add rows to a stream; they are durable when the answer comes, all of them or none."""
    kind, body = await read_rows(request)
    service, soup = caller.service, caller.soup

    def push() -> tuple[Pushed, int]:
        rows = rows_of(kind, body, lambda: _schema_of(soup, name), service.settings)
        count = rows.num_rows if isinstance(rows, pa.Table) else len(rows)
        # A key is its principal's own: nobody can find out, or take, another's.
        own = None if key is None else f"{caller.principal}/{key}"
        try:
            return soup.push(name, rows, key=own), count
        except KeyConflict as conflict:
            conflict.message = conflict.message.replace(f"'{own}'", f"'{key}'")
            raise

    position, count = await asyncio.to_thread(push)
    service.metrics.rows.inc(position.added)
    service.metrics.bytes.inc(len(body))
    service.freshness.pushed(position)
    return reply({"position": str(position), "rows": count, "added": position.added}, 202)


@router.get(
    "/v1/streams/{name}/rejected",
    response_model=shapes.RejectedRows,
    responses=problems(404),
    summary="List rejected rows",
)
async def rejected_rows(caller: Reader, name: str, limit: Limit = 100, after: After = None) -> Response:
    """Rows that could not be taken, with the reason, the oldest first."""
    found = await asyncio.to_thread(caller.soup.rejected, name)
    start = int(after) if after is not None and after.isdecimal() else 0
    some = found[start : start + limit]
    following = str(start + limit) if start + limit < len(found) else None
    return reply({"rejected": some, "next": following})


def find_stream(soup: Soup, name: str) -> dict[str, Any]:
    """One stream as it was made."""
    listed = soup.streams()
    found = next((one for one in listed if name_key(one["name"]) == name_key(name)), None)
    if found is None:
        hint = nearest(name, [one["name"] for one in listed])
        raise UnknownStream(f"there is no stream named '{name}'", hint=hint)
    return found


def _schema_of(soup: Soup, name: str) -> Schema:
    found = find_stream(soup, name)
    return Schema.parse(found["schema"], found["time"])


def shown_stream(caller: Caller, stream: dict[str, Any]) -> dict[str, Any]:
    """A stream as it is shown; the options of its source may hold passwords, and are for admins."""
    if stream.get("source") and not caller.may("admin"):
        error = without_source_details(stream["error"])
        return {**stream, "source": {"format": stream["source"]["format"]}, "error": error}
    return stream
