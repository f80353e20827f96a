"""Templates: many queries of one shape, registered, listed, followed and let go of together."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_schema
from tureen.embedded import Soup
from tureen.errors import UnknownQuery
from tureen.pot.templates import find_template, standing_numbers
from tureen.service import shapes
from tureen.service.bodies import JSON, read_rows, rows_of
from tureen.service.routes.common import (
    EVENTS,
    After,
    Limit,
    Reader,
    Seconds,
    Since,
    Writer,
    checked,
    need,
    page,
    problems,
    reply,
    rows_body,
    shown_plan,
    shown_query,
)
from tureen.service.routes.queries import LastEvent, follow

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
    schema: Annotated[str | None, Query(description="the parameters' types, where the body is CSV")] = None,
) -> Response:
    """Let a query stand for each row; they come within a JSON body, or as rows with the rest in the address."""
    kind, body = await read_rows(request)
    soup, service = caller.soup, caller.service

    def register() -> dict[str, Any]:
        if kind == JSON:
            wanted = checked(shapes.NewTemplate, body)
            text, called, params = wanted.sql, wanted.name, wanted.params
        else:
            text, called = need(sql, "sql"), name
            types = None if schema is None else check_schema(schema)
            params = rows_of(kind, body, lambda: types, service.settings, service.settings.max_queries)
        service.check_room(caller.principal, len(params))
        made = soup.register_many(text, params, name=called)
        return shown_template(soup, made.id)

    return reply(await asyncio.to_thread(register), 201)


@router.get("/v1/templates", response_model=shapes.Templates, responses=problems(), summary="List templates")
async def list_templates(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """The principal's templates and those that others share, in order of registration."""
    found = await asyncio.to_thread(caller.soup.templates)
    some, following = page(found, limit, after, lambda one: str(one["id"]))
    return reply({"templates": some, "next": following})


@router.get(
    "/v1/templates/{handle}", response_model=shapes.Template, responses=problems(404), summary="Show a template"
)
async def show_template(caller: Reader, handle: str) -> Response:
    """One template, by its handle or name."""
    return reply(await asyncio.to_thread(shown_template, caller.soup, handle))


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
    """Let all queries of a template stand no longer."""
    soup = caller.soup
    await asyncio.to_thread(lambda: soup.unregister_template(soup.template(handle).id))
    return Response(status_code=204)


@router.get(
    "/v1/templates/{handle}/queries",
    response_model=shapes.Queries,
    responses=problems(404),
    summary="List the queries of a template",
)
async def list_members(caller: Reader, handle: str, limit: Limit = 100, after: After = None) -> Response:
    """The queries of a template that stand, in the order of their rows of parameters."""
    soup, catalog = caller.soup, caller.service.catalog

    def look() -> dict[str, Any]:
        with catalog.read() as tx:
            template = find_template(tx, soup.template(handle).id)
            if template is None:
                raise UnknownQuery(f"there is no template '{handle}'")
            numbers = standing_numbers(tx, template)
        number = (after or "").rpartition(".")[2]
        start = 0 if not number.isdecimal() else int(numbers.searchsorted(int(number[:18]), side="right"))
        some = [shown_query(template.member(catalog.root, one)) for one in numbers[start : start + limit].tolist()]
        return {"queries": some, "next": some[-1]["id"] if start + limit < len(numbers) else None}

    return reply(await asyncio.to_thread(look))


@router.get(
    "/v1/templates/{handle}/explain",
    response_model=dict[str, Any],
    responses=problems(404),
    summary="Explain a template",
)
async def explain_template(caller: Reader, handle: str) -> Response:
    """How the queries of a template are matched with new rows."""
    soup = caller.soup
    found = await asyncio.to_thread(lambda: soup.explain_template(soup.template(handle).id))
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
