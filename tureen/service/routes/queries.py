"""Standing queries: registered, listed, invoked, explained, followed, let go of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tureen.handle import is_query_handle
from tureen.results.answer import Answer
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.rendering import Rendered, render
from tureen.service.routes.common import (
    EVENTS,
    After,
    Limit,
    Moment,
    Owner,
    Reader,
    Seconds,
    Since,
    Writer,
    answers,
    members_shown,
    owners_soup,
    problems,
    reply,
    sent,
    shown_plan,
    shown_query,
    wanted_of,
)
from tureen.service.watcher import Following
from tureen.soup.feed import ChangeBatch

router = APIRouter(tags=["queries"])

RESULT = "/v1/queries/{handle}/result"

LastEvent = Annotated[str | None, Header(alias="Last-Event-ID", max_length=1 << 20)]


@router.post(
    "/v1/queries",
    status_code=201,
    response_model=shapes.Query | list[shapes.Query],
    responses=problems(404, 409, 429),
    summary="Register a query",
)
async def register_query(caller: Writer, wanted: shapes.NewQuery) -> Response:
    """Let a query stand, or one for each row of parameters; it answers from now on, over what came before as well."""
    soup, service = caller.soup, caller.service

    def register() -> Any:
        service.check_room(caller.principal, 1 if wanted.params is None else len(wanted.params))
        if wanted.params is None:
            query = soup.register(wanted.sql, name=wanted.name, materialize=wanted.materialize)
            return shown_query(soup.registered(query.id))
        made = soup.register_many(wanted.sql, wanted.params, name=wanted.name)
        return members_shown(soup.template_members(made.id), 0, len(wanted.params))

    return reply(await asyncio.to_thread(register), 201)


@router.get("/v1/queries", response_model=shapes.Queries, responses=problems(), summary="List queries")
async def list_queries(caller: Reader, limit: Limit = 100, after: After = None, owner: Owner = None) -> Response:
    """The principal's queries that were registered one by one, and those that others share, in that order.

    With `owner`, those of another principal, or of everybody.
    """
    soup = owners_soup(caller, owner, "queries")

    def look() -> dict[str, Any]:
        found = soup.registered_queries(after=after, limit=limit + 1, owner=owner)
        some = [shown_query(one) for one in found[:limit]]
        return {"queries": some, "next": found[limit - 1].cursor if len(found) > limit else None}

    return reply(await asyncio.to_thread(look))


@router.get("/v1/queries/{handle}", response_model=shapes.Query, responses=problems(404), summary="Show a query")
async def show_query(caller: Reader, handle: str) -> Response:
    """One query, by its handle or name."""
    found = await asyncio.to_thread(caller.soup_of(handle).registered, handle)
    caller.note("looked at", f"query {found.id}", found.owner)
    return reply(shown_query(found))


@router.patch(
    "/v1/queries/{handle}", response_model=shapes.Query, responses=problems(404), summary="Share a query, or not"
)
async def share_query(caller: Writer, handle: str, wanted: shapes.Sharing) -> Response:
    """Let everybody read a query by its handle, or its owner alone."""
    soup = caller.soup

    def share() -> dict[str, Any]:
        found = caller.handle(handle)
        soup.share(found, wanted.shared)
        return shown_query(soup.registered(found))

    return reply(await asyncio.to_thread(share))


@router.delete(
    "/v1/queries/{handle}", status_code=204, response_class=Response, responses=problems(404), summary="Drop a query"
)
async def drop_query(caller: Writer, handle: str) -> Response:
    """Let a query stand no longer; by its handle, an admin drops anybody's."""

    def drop() -> None:
        soup = caller.soup_of(handle)
        found = soup.registered(handle)
        soup.unregister(found.id)
        caller.note("dropped", f"query {found.id}", found.owner)

    await asyncio.to_thread(drop)
    return Response(status_code=204)


@router.get(
    RESULT,
    responses={**answers(shapes.Result), 304: {"description": "As before."}, **problems(404, 406, 408, 409, 429)},
    summary="Invoke a query",
)
async def invoke_query(
    caller: Reader,
    handle: str,
    request: Request,
    now: Moment | None = None,
    wait_for: Annotated[list[str], Query(max_length=100, description="positions that must be in")] = [],  # noqa: B006
    timeout: Seconds = None,
    limit: Annotated[int | None, Query(ge=0, le=1 << 62, description="the first so many rows")] = None,
) -> Response:
    """The answer over the window as it is now, or at another time."""
    service = caller.service
    wanted = wanted_of(request, caller, limit, "" if now is None else str(now))
    if wait_for:
        await service.wait(caller.principal, wait_for, timeout)

    def show(answer: Answer) -> Rendered:
        service.metrics.answered.inc(len(answer))
        return render(answer, wanted)

    found = await asyncio.to_thread(caller.handle, handle) if not is_query_handle(handle) else handle
    return sent(await service.invoke(caller.principal, caller.soup, found, now, show))


@router.get(
    "/v1/queries/{handle}/explain", response_model=dict[str, Any], responses=problems(404), summary="Explain a query"
)
async def explain_query(caller: Reader, handle: str) -> Response:
    """How a query is answered; by its handle, an admin is told of anybody's."""

    def explain() -> dict[str, Any]:
        soup = caller.soup_of(handle)
        found = soup.registered(handle)
        caller.note("explained", f"query {found.id}", found.owner)
        return soup.explain(found.id)

    return reply(shown_plan(caller, await asyncio.to_thread(explain)))


@router.get("/v1/queries/{handle}/changes", responses={**EVENTS, **problems(404, 409, 429)}, summary="Follow a query")
async def follow_query(
    caller: Reader,
    handle: str,
    request: Request,
    since: Since = None,
    last: LastEvent = None,
    timeout: Seconds = None,
) -> Response:
    """The rows that join a query's answer, as they come."""
    soup = caller.soup
    found = await asyncio.to_thread(caller.handle, handle)
    return await follow(request, caller, lambda at: soup.looks.query(found, at), last or since, timeout)


@router.get("/v1/changes", responses={**EVENTS, **problems(429)}, summary="Follow all queries")
async def follow_all(
    caller: Reader,
    request: Request,
    since: Since = None,
    last: LastEvent = None,
    timeout: Seconds = None,
) -> Response:
    """The rows that join the answer of any of the principal's queries and templates, as they come."""
    return await follow(request, caller, caller.soup.looks.all, last or since, timeout)


async def follow(
    request: Request,
    caller: Caller,
    look: Callable[[str | None], ChangeBatch],
    since: str | None,
    timeout: float | None,
) -> Response:
    """Server-sent events of what looking gives; the first look comes before the answer's head, and may refuse."""
    service = caller.service

    def allowed() -> None:
        service.gate.admit(request, service).check("read")

    service.following.take(caller.principal)
    try:
        following = await Following(service.watcher, look, since, allowed).begin()
    except BaseException:
        service.following.give_back(caller.principal)
        raise

    async def events() -> AsyncIterator[bytes]:
        try:
            async for part in following.events(
                heartbeat=service.settings.heartbeat,
                timeout=timeout,
                request_id=request.scope["tureen.request"],
                told=service.metrics.changes.inc,
            ):
                yield part
        finally:
            service.following.give_back(caller.principal)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
