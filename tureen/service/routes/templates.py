"""Templates: many queries of one shape, registered, listed, followed and let go of together."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_schema
from tureen.service import body_shapes as shapes
from tureen.service.bodies import JSON, read_rows, rows_of
from tureen.service.routes.common import (
    EVENTS,
    After,
    Limit,
    Owner,
    Reader,
    Seconds,
    Since,
    Writer,
    checked,
    members_shown,
    need,
    owners_soup,
    page,
    problems,
    reply,
    rows_body,
    shown_plan,
)
from tureen.service.routes.queries import LastEvent, follow
from tureen.soup.embedded import Soup

router = APIRouter(tags=["templates"])


@router.post(
    "/v1/templates",
    status_code=201,
    response_model=shapes.Template,
    responses=problems(404, 409, 429),
    openapi_extra=rows_body(json=shapes.NewTemplate.model_json_schema()),
    summary="Register a query for each row of parameters",
)
async def register_template(
    caller: Writer,
    request: Request,
    sql: Annotated[str | None, Query(description="the query, where the body has the parameters alone")] = None,
    name: Annotated[str | None, Query(description="a name, where the body has the parameters alone")] = None,
    label: Annotated[str | None, Query(description="the column that comes with each change")] = None,
    schema: Annotated[str | None, Query(description="the parameters' types, where the body is CSV")] = None,
) -> Response:
    """Let a query stand for each row; they come within a JSON body, or as rows with the rest in the address."""
    kind, body = await read_rows(request)
    soup, service = caller.soup, caller.service

    def register() -> dict[str, Any]:
        if kind == JSON:
            wanted = checked(shapes.NewTemplate, body)
            text, called, params, column = wanted.sql, wanted.name, wanted.params, wanted.label
        else:
            text, called, column = need(sql, "sql"), name, label
            types = None if schema is None else check_schema(schema)
            params = rows_of(kind, body, lambda: types, service.settings, service.settings.max_queries)
        service.check_room(caller.principal, len(params))
        made = soup.register_many(text, params, name=called, label=column)
        return shown_template(soup, made.id)

    return reply(await asyncio.to_thread(register), 201)


@router.get("/v1/templates", response_model=shapes.Templates, responses=problems(), summary="List templates")
async def list_templates(caller: Reader, limit: Limit = 100, after: After = None, owner: Owner = None) -> Response:
    """The principal's templates and those that others share, in order of registration.

    With `owner`, those of another principal, or of everybody.
    """
    soup = owners_soup(caller, owner, "templates")
    found = await asyncio.to_thread(lambda: soup.templates(owner=owner))
    some, following = page(found, limit, after, lambda one: str(one["id"]))
    return reply({"templates": some, "next": following})


@router.get(
    "/v1/templates/{handle}", response_model=shapes.Template, responses=problems(404), summary="Show a template"
)
async def show_template(caller: Reader, handle: str) -> Response:
    """One template, by its handle or name."""
    found = await asyncio.to_thread(shown_template, caller.soup_of(handle), handle)
    caller.note("looked at", f"template {found['id']}", found["owner"])
    return reply(found)


@router.patch(
    "/v1/templates/{handle}",
    response_model=shapes.Template,
    responses=problems(404),
    summary="Share a template, or not",
)
async def share_template(caller: Writer, handle: str, wanted: shapes.Sharing) -> Response:
    """Let everybody read a template's queries by their handles, or its owner alone."""
    soup = caller.soup

    def share() -> dict[str, Any]:
        found = soup.template(handle)
        soup.share(found.id, wanted.shared)
        return shown_template(soup, found.id)

    return reply(await asyncio.to_thread(share))


@router.delete(
    "/v1/templates/{handle}",
    status_code=204,
    response_class=Response,
    responses=problems(404),
    summary="Drop a template",
)
async def drop_template(caller: Writer, handle: str) -> Response:
    """Let all queries of a template stand no longer; by its handle, an admin drops anybody's."""

    def drop() -> None:
        soup = caller.soup_of(handle)
        found = soup.describe_template(handle)
        soup.unregister_template(found["id"])
        caller.note("dropped", f"template {found['id']}", found["owner"])

    await asyncio.to_thread(drop)
    return Response(status_code=204)


@router.get(
    "/v1/templates/{handle}/queries",
    response_model=shapes.Queries,
    responses=problems(404),
    summary="List the queries of a template",
)
async def list_members(
    caller: Reader,
    handle: str,
    limit: Limit = 100,
    after: After = None,
    start: Annotated[int | None, Query(ge=0, lt=1 << 62, description="how many to leave out before the first")] = None,
) -> Response:
    """The queries of a template that stand, in the order of their numbers."""
    soup = caller.soup_of(handle)

    def look() -> dict[str, Any]:
        members = soup.template_members(soup.template(handle).id)
        number = (after or "").rpartition(".")[2]
        caller.note("listed the queries of", f"template {members.template.id}", members.template.owner)
        first = start or 0 if not number.isdecimal() else members.after(int(number[:18]))
        some = members_shown(members, first, limit)
        return {"queries": some, "next": some[-1]["id"] if some and first + limit < len(members) else None}

    return reply(await asyncio.to_thread(look))


@router.post(
    "/v1/templates/{handle}/rows",
    status_code=201,
    response_model=shapes.AddedRows,
    responses=problems(404, 429),
    openapi_extra=rows_body(),
    summary="Add rows of parameters",
)
async def add_rows(caller: Writer, handle: str, request: Request) -> Response:
    """Let a query stand for each of some more rows; they have the columns that the template has."""
    kind, body = await read_rows(request)
    soup, service = caller.soup, caller.service

    def add() -> dict[str, Any]:
        template = soup.template_members(soup.template(handle).id).template
        rows = rows_of(kind, body, lambda: template.columns, service.settings, service.settings.max_queries)
        service.check_room(caller.principal, len(rows))
        numbers = soup.add_to_template(template.id, rows)
        return {"first": numbers[0], "rows": len(numbers)}

    return reply(await asyncio.to_thread(add), 201)


@router.post(
    "/v1/templates/{handle}/rows/remove",
    response_model=shapes.Removed,
    responses=problems(404),
    summary="Remove rows of parameters",
)
async def remove_rows(caller: Writer, handle: str, wanted: shapes.RemovedRows) -> Response:
    """Let some queries of a template stand no longer, by their numbers or by their values."""
    soup = caller.soup

    def remove() -> dict[str, Any]:
        found = soup.template(handle)
        return {"removed": soup.remove_from_template(found.id, wanted.numbers, wanted.where)}

    return reply(await asyncio.to_thread(remove))


@router.get(
    "/v1/templates/{handle}/explain",
    response_model=dict[str, Any],
    responses=problems(404),
    summary="Explain a template",
)
async def explain_template(caller: Reader, handle: str) -> Response:
    """How the queries of a template are matched with new rows."""
    soup = caller.soup_of(handle)
    found = await asyncio.to_thread(lambda: soup.explain_template(soup.template(handle).id))
    caller.note("explained", f"template {found['id']}", found["owner"])
    return reply(shown_plan(caller, found))


@router.get(
    "/v1/templates/{handle}/changes", responses={**EVENTS, **problems(404, 409, 429)}, summary="Follow a template"
)
async def follow_template(
    caller: Reader,
    handle: str,
    request: Request,
    since: Since = None,
    last: LastEvent = None,
    timeout: Seconds = None,
) -> Response:
    """The rows that join the answer of any query of a template, as they come."""
    soup = caller.soup
    found = await asyncio.to_thread(soup.template, handle)
    return await follow(request, caller, lambda at: soup.looks.template(found.id, at), last or since, timeout)


def shown_template(soup: Soup, handle: str) -> dict[str, Any]:
    """A template as it is shown."""
    return soup.describe_template(handle)
