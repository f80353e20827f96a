"""Routes of templates: register, list, show, share, drop, add and remove rows, explain and follow."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_schema
from tureen.handle import parse_member
from tureen.service import body_shapes as shapes
from tureen.service.bodies import JSON, parse_rows, read_row_body
from tureen.service.routes.descriptions import EVENT_STREAM, describe_errors, describe_row_body, without_content
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
    Writer,
    require_parameter,
    validate_body,
)
from tureen.service.routes.queries import follow
from tureen.service.routes.responses import json_response, member_infos, page, soup_of_owner, visible_plan
from tureen.soup.change_batches import ChangeBatch
from tureen.soup.group_batches import GroupReader
from tureen.soup.turns import change_choice

router = APIRouter(tags=["templates"])


@router.post(
    "/v1/templates",
    status_code=201,
    response_model=shapes.TemplateInfo,
    responses=describe_errors(404, 409, 429),
    openapi_extra=describe_row_body(json=shapes.NewTemplate.model_json_schema()),
    summary="Register a template",
)
async def register_template(
    caller: Writer,
    request: Request,
    sql: Annotated[str | None, Query(description="the query, if the body holds parameters only")] = None,
    name: Annotated[str | None, Query(description="a name, if the body holds parameters only")] = None,
    label: Annotated[str | None, Query(description="the column that labels each change")] = None,
    schema: Annotated[str | None, Query(description="the types of the parameters, if the body is CSV")] = None,
) -> Response:
    """Register a query for each row of parameters, from a JSON body, or from rows with the query as a parameter."""
    media_type, body = await read_row_body(request)
    soup, service = caller.soup, caller.service

    def register() -> dict[str, Any]:
        if media_type == JSON:
            new = validate_body(shapes.NewTemplate, body)
            text, template_name, params, label_column = new.sql, new.name, new.params, new.label
        else:
            text, template_name, label_column = require_parameter(sql, "sql"), name, label
            types = None if schema is None else check_schema(schema)
            params = parse_rows(media_type, body, lambda: types, service.settings, service.settings.max_queries)
        service.check_query_limit(caller.principal, len(params))
        template = soup.register_many(text, params, name=template_name, label=label_column)
        return soup.describe_template(template.id)

    return json_response(await asyncio.to_thread(register), 201)


@router.get("/v1/templates", response_model=shapes.TemplateList, responses=describe_errors(), summary="List templates")
async def list_templates(caller: Reader, limit: Limit = 100, after: After = None, owner: Owner = None) -> Response:
    """The templates of the principal and those shared by others, in order of registration.

    With `owner`, the templates of another principal, or of all principals.
    """
    soup = soup_of_owner(caller, owner, "templates")
    templates = await asyncio.to_thread(lambda: soup.templates(owner=owner))
    page_templates, next_page = page(templates, limit, after, lambda template: str(template["id"]))
    return json_response({"templates": page_templates, "next": next_page})


@router.get(
    "/v1/templates/{handle}",
    response_model=shapes.TemplateInfo,
    responses=describe_errors(404),
    summary="Show a template",
)
async def show_template(caller: Reader, handle: str) -> Response:
    """A template, by its handle or name."""
    template = await asyncio.to_thread(caller.soup_for(handle).describe_template, handle)
    caller.log_admin_access("looked at", f"template {template['id']}", template["owner"])
    return json_response(template)


@router.patch(
    "/v1/templates/{handle}",
    response_model=shapes.TemplateInfo,
    responses=describe_errors(404),
    summary="Share or unshare a template",
)
async def share_template(caller: Writer, handle: str, body: shapes.ShareRequest) -> Response:
    """Let all principals read a template's queries by their handles, or its owner alone."""
    soup = caller.soup

    def share() -> dict[str, Any]:
        template = soup.template(handle)
        soup.share(template.id, body.shared)
        return soup.describe_template(template.id)

    return json_response(await asyncio.to_thread(share))


@router.delete("/v1/templates/{handle}", summary="Drop a template", **without_content(404))
async def drop_template(caller: Writer, handle: str) -> Response:
    """Unregister all queries of a template; with a handle, an admin can drop those of all principals."""

    def drop() -> None:
        soup = caller.soup_for(handle)
        template = soup.describe_template(handle)
        soup.calls.unregister_template(template["id"])
        caller.log_admin_access("dropped", f"template {template['id']}", template["owner"])

    await asyncio.to_thread(drop)
    return Response(status_code=204)


@router.get(
    "/v1/templates/{handle}/queries",
    response_model=shapes.QueryList,
    responses=describe_errors(404),
    summary="List the queries of a template",
)
async def list_members(
    caller: Reader,
    handle: str,
    limit: Limit = 100,
    after: After = None,
    start: Annotated[int | None, Query(ge=0, lt=1 << 62, description="the number of queries to skip")] = None,
) -> Response:
    """The standing queries of a template, in the order of their numbers."""
    soup = caller.soup_for(handle)

    def read() -> dict[str, Any]:
        members = soup.calls.template_members(soup.template(handle).id)
        last = None if after is None else parse_member(after)
        caller.log_admin_access("listed the queries of", f"template {members.template.id}", members.template.owner)
        first = start or 0 if last is None else members.after(last.number)
        infos = member_infos(members, first, limit)
        return {"queries": infos, "next": infos[-1]["id"] if infos and first + limit < len(members) else None}

    return json_response(await asyncio.to_thread(read))


@router.post(
    "/v1/templates/{handle}/rows",
    status_code=201,
    response_model=shapes.AddedRows,
    responses=describe_errors(404, 429),
    openapi_extra=describe_row_body(),
    summary="Add rows of parameters",
)
async def add_rows(caller: Writer, handle: str, request: Request) -> Response:
    """Register a query for each row; the rows must have the columns of the template."""
    media_type, body = await read_row_body(request)
    soup, service = caller.soup, caller.service

    def add() -> dict[str, Any]:
        template = soup.calls.template_members(soup.template(handle).id).template
        rows = parse_rows(media_type, body, lambda: template.columns, service.settings, service.settings.max_queries)
        service.check_query_limit(caller.principal, len(rows))
        numbers = soup.calls.add_to_template(template.id, rows)
        return {"first": numbers[0], "rows": len(numbers)}

    return json_response(await asyncio.to_thread(add), 201)


@router.post(
    "/v1/templates/{handle}/rows/remove",
    response_model=shapes.RemovedCount,
    responses=describe_errors(404),
    summary="Remove rows of parameters",
)
async def remove_rows(caller: Writer, handle: str, body: shapes.RowsToRemove) -> Response:
    """Unregister queries of a template, by the numbers or values of their rows."""
    soup = caller.soup

    def remove() -> dict[str, Any]:
        return {"removed": soup.template(handle).remove(body.numbers, where=body.where)}

    return json_response(await asyncio.to_thread(remove))


@router.get(
    "/v1/templates/{handle}/explain",
    response_model=dict[str, Any],
    responses=describe_errors(404),
    summary="Explain a template",
)
async def explain_template(caller: Reader, handle: str) -> Response:
    """How the queries of a template are matched with new rows."""
    soup = caller.soup_for(handle)
    plan = await asyncio.to_thread(lambda: soup.template(handle).explain())
    caller.log_admin_access("explained", f"template {plan['id']}", plan["owner"])
    return json_response(visible_plan(caller, plan))


@router.get(
    "/v1/templates/{handle}/changes",
    responses={**EVENT_STREAM, **describe_errors(404, 409, 429)},
    summary="Follow a template",
)
async def follow_template(
    caller: Reader,
    handle: str,
    request: Request,
    since: Since = None,
    last: LastEventId = None,
    timeout: Seconds = None,
    on: On = None,
    hold: Hold = None,
) -> Response:
    """The rows that join the answer of any query of a template, as they arrive."""
    soup, groups = caller.soup, GroupReader(change_choice(on, hold))
    template = await asyncio.to_thread(soup.template, handle)

    def read_changes(position: str | None) -> ChangeBatch:
        return soup.calls.change_reader.template(template.id, position, groups)

    shared = (template.id, on) if hold is None else None
    return await follow(request, caller, read_changes, last or since, timeout, shared=shared)
