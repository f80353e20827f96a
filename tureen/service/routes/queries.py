"""Routes of standing queries: register, list, show, share, drop, invoke, explain, why and follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tureen.errors import TureenError, Unsupported
from tureen.handle import is_query_handle
from tureen.results.answer import Answer
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.bodies import JSON
from tureen.service.connections import DIRECT_WRITE
from tureen.service.error_responses import encode_json
from tureen.service.event_stream import Follower
from tureen.service.recent_values import accepted_age
from tureen.service.rendering import Rendered, ResponseFormat, render, unless_known
from tureen.service.routes.descriptions import EVENT_STREAM, describe_answer, describe_errors, without_content
from tureen.service.routes.parameters import (
    After,
    Hold,
    LastEventId,
    Limit,
    On,
    Owner,
    Reader,
    Seconds,
    Since,
    Timestamp,
    Writer,
)
from tureen.service.routes.responses import (
    json_response,
    member_infos,
    query_info,
    response_format,
    soup_of_owner,
    to_response,
    visible_plan,
)
from tureen.service.shared_answers import AnswerKey
from tureen.soup.change_batches import ChangeBatch
from tureen.soup.group_batches import GroupReader
from tureen.soup.turns import change_choice
from tureen.why.explanation import DEFAULT_LIMIT, MAX_LIMIT
from tureen.why.explanation_json import to_json

router = APIRouter(tags=["queries"])

RESULT = "/v1/queries/{handle}/result"


@router.post(
    "/v1/queries",
    status_code=201,
    response_model=shapes.QueryInfo | list[shapes.QueryInfo],
    responses=describe_errors(404, 409, 429, 502),
    summary="Register a query",
)
async def register_query(caller: Writer, body: shapes.NewQuery) -> Response:
    """Register a query, or one for each row of parameters; its answers include rows that arrived before."""
    soup, service = caller.soup, caller.service

    def register() -> Any:
        service.check_query_limit(caller.principal, 1 if body.params is None else len(body.params))
        if body.params is None:
            query = soup.register(
                body.sql,
                name=body.name,
                materialize=body.materialize,
                plan=body.plan,
                jit=body.jit,
                language=body.language,
            )
            return query_info(soup.calls.registered(query.id))
        if body.plan is not None or body.jit is not None:
            raise TureenError("plan and jit are not supported for queries with parameters")
        if body.language != "sql":
            raise Unsupported("parameters are only supported in SQL")
        template = soup.register_many(body.sql, body.params, name=body.name)
        return member_infos(soup.calls.template_members(template.id), 0, len(body.params))

    return json_response(await asyncio.to_thread(register), 201)


@router.get("/v1/queries", response_model=shapes.QueryList, responses=describe_errors(), summary="List queries")
async def list_queries(
    caller: Reader,
    limit: Limit = 100,
    after: After = None,
    owner: Owner = None,
    search: Annotated[str | None, Query(max_length=1_000, description="a text in the name, SQL or handle")] = None,
    failed: Annotated[bool, Query(description="only queries that were stopped by an error")] = False,
) -> Response:
    """The queries of the principal and those shared by others, in order of registration, without those of templates.

    With `owner`, the queries of another principal, or of all principals.
    """
    soup = soup_of_owner(caller, owner, "queries")

    def read() -> dict[str, Any]:
        queries = soup.calls.registered_queries(after, limit + 1, owner, search, failed=failed)
        infos = [query_info(query) for query in queries[:limit]]
        return {"queries": infos, "next": queries[limit - 1].cursor if len(queries) > limit else None}

    return json_response(await asyncio.to_thread(read))


@router.get(
    "/v1/queries/{handle}", response_model=shapes.QueryInfo, responses=describe_errors(404), summary="Show a query"
)
async def show_query(caller: Reader, handle: str) -> Response:
    """A query, by its handle or name."""
    query = await asyncio.to_thread(caller.soup_for(handle).calls.registered, handle)
    caller.log_admin_access("looked at", f"query {query.id}", query.owner)
    return json_response(query_info(query))


@router.patch(
    "/v1/queries/{handle}",
    response_model=shapes.QueryInfo,
    responses=describe_errors(404),
    summary="Share or unshare a query",
)
async def share_query(caller: Writer, handle: str, body: shapes.ShareRequest) -> Response:
    """Let all principals read a query by its handle, or its owner alone."""
    soup = caller.soup

    def share() -> dict[str, Any]:
        query_id = caller.resolve_handle(handle)
        soup.share(query_id, body.shared)
        return query_info(soup.calls.registered(query_id))

    return json_response(await asyncio.to_thread(share))


@router.delete("/v1/queries/{handle}", summary="Unregister a query", **without_content(404))
async def drop_query(caller: Writer, handle: str) -> Response:
    """Unregister a query; with a handle, an admin can unregister those of all principals."""

    def drop() -> None:
        calls = caller.soup_for(handle).calls
        query = calls.registered(handle)
        calls.unregister(query.id)
        caller.log_admin_access("dropped", f"query {query.id}", query.owner)

    await asyncio.to_thread(drop)
    return Response(status_code=204)


@router.get(
    RESULT,
    responses={
        **describe_answer(shapes.QueryResult),
        304: {"description": "Not modified."},
        **describe_errors(404, 406, 408, 409, 429, 502),
    },
    summary="Invoke a query",
)
async def invoke_query(
    caller: Reader,
    handle: str,
    request: Request,
    now: Timestamp | None = None,
    wait_for: Annotated[list[str], Query(max_length=100, description="a position to wait for")] = [],  # noqa: B006
    timeout: Seconds = None,
    limit: Annotated[int | None, Query(ge=0, le=1 << 62, description="the most rows to return")] = None,
) -> Response:
    """The answer over the window at the current time, or at `now`."""
    service = caller.service
    answer_format = response_format(request, caller, limit, "" if now is None else str(now))
    if wait_for:
        await service.wait(caller.principal, wait_for, timeout)

    query_id = handle if is_query_handle(handle) else await asyncio.to_thread(caller.resolve_handle, handle)

    async def invoke(asked_format: ResponseFormat) -> Rendered:
        def render_answer(answer: Answer) -> Rendered:
            service.metrics.answered.inc(len(answer))
            return render(answer, asked_format)

        return await service.invoke(caller.principal, caller.soup.calls, query_id, now, render_answer)

    max_age = accepted_age(request.headers)
    if not max_age:
        return to_response(await invoke(answer_format))
    for_all = replace(answer_format, if_none_match=None)
    key = AnswerKey(caller.principal, query_id, for_all)
    rendered = await service.answers.get(key, max_age, lambda: invoke(for_all))
    return to_response(unless_known(rendered, answer_format.if_none_match))


@router.get(
    "/v1/queries/{handle}/explain",
    response_model=dict[str, Any],
    responses=describe_errors(404),
    summary="Explain a query",
)
async def explain_query(caller: Reader, handle: str) -> Response:
    """How a query is evaluated; with a handle, an admin can explain those of all principals."""

    def explain() -> dict[str, Any]:
        calls = caller.soup_for(handle).calls
        query = calls.registered(handle)
        caller.log_admin_access("explained", f"query {query.id}", query.owner)
        return calls.explain(query.id)

    return json_response(visible_plan(caller, await asyncio.to_thread(explain)))


@router.get(
    "/v1/queries/{handle}/why",
    response_model=shapes.ExplanationInfo,
    responses=describe_errors(404, 409, 429, 431),
    summary="Explain tuples",
)
async def explain_tuples(
    caller: Reader,
    handle: str,
    where: Annotated[str, Query(description="a condition over one input of the query")],
    now: Timestamp | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="the most tuples to explain")] = DEFAULT_LIMIT,
) -> Response:
    """Whether the tuples that satisfy a condition are in the query's answer, and what kept them out."""

    def explain() -> Rendered:
        query_id = handle if is_query_handle(handle) else caller.resolve_handle(handle)
        explanation = caller.soup.calls.why(query_id, where, now, limit)
        return Rendered({"Content-Type": JSON}, encode_json(to_json(explanation)))

    return to_response(await caller.service.compute(caller.principal, explain))


@router.get(
    "/v1/queries/{handle}/changes",
    responses={**EVENT_STREAM, **describe_errors(404, 409, 429)},
    summary="Follow a query",
)
async def follow_query(
    caller: Reader,
    handle: str,
    request: Request,
    since: Since = None,
    last: LastEventId = None,
    timeout: Seconds = None,
    on: On = None,
    hold: Hold = None,
    punctuations: Annotated[bool, Query(description="whether to send the punctuations of the answer too")] = False,
) -> Response:
    """The rows that join a query's answer, as they arrive; of groups, also those that change and leave."""
    soup, groups = caller.soup, GroupReader(change_choice(on, hold))
    query_id = await asyncio.to_thread(caller.resolve_handle, handle)
    follower = await asyncio.to_thread(
        partial(soup.calls.change_reader.follower, query_id, groups, punctuations=punctuations)
    )
    return await follow(
        request,
        caller,
        follower.read,
        last or since,
        timeout,
        clause=follower.clause,
        # Whether a turn lasts is decided for each follower.
        shared=(query_id, on, punctuations) if hold is None else None,
        on_end=follower.close,
    )


@router.get("/v1/changes", responses={**EVENT_STREAM, **describe_errors(429)}, summary="Follow all queries")
async def follow_all(
    caller: Reader,
    request: Request,
    since: Since = None,
    last: LastEventId = None,
    timeout: Seconds = None,
) -> Response:
    """The changes of all of the principal's queries and templates, those of groups included, as they happen."""
    follower = caller.soup.calls.change_reader.feed()
    # Closing waits for a read, and takes a while with many queries.
    close_later = partial(asyncio.get_running_loop().run_in_executor, None, follower.close)
    return await follow(request, caller, follower.read, last or since, timeout, shared="all", on_end=close_later)


async def follow(
    request: Request,
    caller: Caller,
    read_changes: Callable[[str | None], ChangeBatch],
    since: str | None,
    timeout: float | None,
    *,
    clause: Hashable = None,
    shared: Hashable = None,
    on_end: Callable[[], object] = lambda: None,
) -> Response:
    """An event stream of changes; an error of the first read is an error response.

    With a clause, changes are read only after tuples that may satisfy it. Followers of one principal for which `shared`
    is equal, and not None, read the same changes. At the end, `on_end` is called.
    """
    service = caller.service

    is_session = "authorization" not in request.headers

    def check_access() -> None:
        # A session may have ended; a token that was sent is the same as before.
        current = service.authenticator.authenticate(request, service) if is_session else caller.check_token()
        current.require_scope("read")

    with ExitStack() as acquired:
        acquired.callback(on_end)
        acquired.enter_context(service.following.hold(caller.principal))
        acquired.enter_context(service.watcher.following(clause))
        key = None if shared is None else (caller.principal, shared)
        follower = await Follower(
            service.watcher,
            service.reads,
            read_changes,
            since,
            check_access,
            clause=clause,
            shared=key,
            write=request.scope.pop(DIRECT_WRITE, None),
        ).begin()
        held = acquired.pop_all()

    async def events() -> AsyncIterator[bytes]:
        with held:
            async for part in follower.events(
                heartbeat=service.settings.heartbeat,
                timeout=timeout,
                request_id=request.scope["tureen.request"],
                on_sent=service.metrics.changes.inc,
            ):
                yield part

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events(), headers=headers, media_type="text/event-stream")
