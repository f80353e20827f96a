"""Tables: dimension data, made, read, replaced and dropped as a whole."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_schema
from tureen.errors import TooLarge, UnknownTable, nearest
from tureen.schema import Schema, name_key
from tureen.service import body_shapes as shapes
from tureen.service.bodies import JSON, read_rows, rows_of
from tureen.service.rendering import Rendered, render_table
from tureen.service.routes.common import (
    Admin,
    After,
    Limit,
    Reader,
    Writer,
    answers,
    checked,
    need,
    page,
    problems,
    reply,
    rows_body,
    sent,
    wanted_of,
)
from tureen.soup.embedded import Soup

router = APIRouter(tags=["tables"])


@router.post(
    "/v1/tables",
    status_code=201,
    response_model=shapes.Table,
    responses=problems(409),
    openapi_extra=rows_body(json=shapes.NewTable.model_json_schema()),
    summary="Create a table",
)
async def create_table(
    caller: Writer,
    request: Request,
    name: Annotated[str | None, Query(description="the name, where the body has the rows alone")] = None,
    schema: Annotated[str | None, Query(description="the columns, where the body has the rows alone")] = None,
    if_not_exists: Annotated[bool, Query(description="leave a table of that name as it is")] = False,
) -> Response:
    """Make a table with its first rows; they come within a JSON body, or as rows with the rest in the address."""
    kind, body = await read_rows(request)
    soup, settings = caller.soup, caller.service.settings

    def create() -> dict[str, Any]:
        rows: Any
        types: str | None
        if kind == JSON:
            wanted = checked(shapes.NewTable, body)
            called, types, rows, leave = wanted.name, wanted.schema_, wanted.rows, wanted.if_not_exists
        else:
            called, types, leave = need(name, "name"), schema, if_not_exists
            known = None if schema is None else check_schema(schema)
            rows = rows_of(kind, body, lambda: known, settings)
        soup.create_table(called, types, rows, if_not_exists=leave)
        return find_table(soup, called)

    return reply(await asyncio.to_thread(create), 201)


@router.get("/v1/tables", response_model=shapes.Tables, responses=problems(), summary="List tables")
async def list_tables(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """The tables, in order of creation."""
    found = await asyncio.to_thread(caller.soup.tables)
    some, following = page(found, limit, after, lambda one: str(one["name"]))
    return reply({"tables": some, "next": following})


@router.get("/v1/tables/{name}", response_model=shapes.Table, responses=problems(404), summary="Show a table")
async def show_table(caller: Reader, name: str) -> Response:
    """One table."""
    return reply(await asyncio.to_thread(find_table, caller.soup, name))


@router.delete(
    "/v1/tables/{name}", status_code=204, response_class=Response, responses=problems(404), summary="Drop a table"
)
async def drop_table(caller: Admin, name: str) -> Response:
    """Remove a table."""
    await asyncio.to_thread(caller.soup.drop_table, name)
    return Response(status_code=204)


@router.get(
    "/v1/tables/{name}/rows",
    responses={**answers(shapes.TableRows), **problems(404, 406, 429)},
    summary="Read a table",
)
async def read_table(caller: Reader, name: str, request: Request) -> Response:
    """All rows of a table."""
    wanted, soup = wanted_of(request, caller, None), caller.soup

    def read() -> Rendered:
        table = soup.table(name)
        if table.num_rows > wanted.most:
            raise TooLarge(f"the table has {table.num_rows:,} rows", hint=f"at most {wanted.most:,} are sent")
        return render_table(table, wanted)

    return sent(await caller.service.compute(caller.principal, read))


@router.put(
    "/v1/tables/{name}/rows",
    response_model=shapes.Table,
    responses=problems(404),
    openapi_extra=rows_body(),
    summary="Replace the rows of a table",
)
async def replace_table(caller: Writer, name: str, request: Request) -> Response:
    """Put new rows in the place of all that a table holds, in one step."""
    kind, body = await read_rows(request)
    soup, settings = caller.soup, caller.service.settings

    def replace() -> dict[str, Any]:
        known = find_table(soup, name)
        rows = rows_of(kind, body, lambda: Schema.parse(known["schema"]), settings)
        soup.replace_table(name, rows)
        return find_table(soup, name)

    return reply(await asyncio.to_thread(replace))


def find_table(soup: Soup, name: str) -> dict[str, Any]:
    """One table as it is now."""
    listed = soup.tables()
    found = next((one for one in listed if name_key(one["name"]) == name_key(name)), None)
    if found is None:
        hint = nearest(name, [one["name"] for one in listed])
        raise UnknownTable(f"there is no table named '{name}'", hint=hint)
    return found
