"""Routes of tables: create, list, show, drop, read and replace."""

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
from tureen.service.bodies import JSON, parse_rows, read_row_body
from tureen.service.rendering import Rendered, render_table
from tureen.service.routes.descriptions import describe_answer, describe_errors, describe_row_body, without_content
from tureen.service.routes.parameters import Admin, After, Limit, Reader, Writer, require_parameter, validate_body
from tureen.service.routes.responses import json_response, page, response_format, to_response
from tureen.soup.embedded import Soup

router = APIRouter(tags=["tables"])


@router.post(
    "/v1/tables",
    status_code=201,
    response_model=shapes.TableInfo,
    responses=describe_errors(409),
    openapi_extra=describe_row_body(json=shapes.NewTable.model_json_schema()),
    summary="Create a table",
)
async def create_table(
    caller: Writer,
    request: Request,
    name: Annotated[str | None, Query(description="the name, if the body holds rows only")] = None,
    schema: Annotated[str | None, Query(description="the columns, if the body holds rows only")] = None,
    if_not_exists: Annotated[bool, Query(description="keep an existing table of that name")] = False,
) -> Response:
    """Create a table from a JSON body, or from rows with the name and schema as query parameters."""
    media_type, body = await read_row_body(request)
    soup, settings = caller.soup, caller.service.settings

    def create() -> dict[str, Any]:
        rows: Any
        types: str | None
        if media_type == JSON:
            new = validate_body(shapes.NewTable, body)
            table_name, types, rows, keep_existing = new.name, new.schema_, new.rows, new.if_not_exists
        else:
            table_name, types, keep_existing = require_parameter(name, "name"), schema, if_not_exists
            row_schema = None if schema is None else check_schema(schema)
            rows = parse_rows(media_type, body, lambda: row_schema, settings)
        soup.create_table(table_name, types, rows, if_not_exists=keep_existing)
        return find_table(soup, table_name)

    return json_response(await asyncio.to_thread(create), 201)


@router.get("/v1/tables", response_model=shapes.TableList, responses=describe_errors(), summary="List tables")
async def list_tables(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """The tables, in order of creation."""
    tables = await asyncio.to_thread(caller.soup.tables)
    page_tables, next_page = page(tables, limit, after, lambda table: str(table["name"]))
    return json_response({"tables": page_tables, "next": next_page})


@router.get(
    "/v1/tables/{name}", response_model=shapes.TableInfo, responses=describe_errors(404), summary="Show a table"
)
async def show_table(caller: Reader, name: str) -> Response:
    """A table, by its name."""
    return json_response(await asyncio.to_thread(find_table, caller.soup, name))


@router.delete("/v1/tables/{name}", summary="Drop a table", **without_content(404))
async def drop_table(caller: Admin, name: str) -> Response:
    """Drop a table."""
    await asyncio.to_thread(caller.soup.drop_table, name)
    return Response(status_code=204)


@router.get(
    "/v1/tables/{name}/rows",
    responses={**describe_answer(shapes.TableRows), **describe_errors(404, 406, 429)},
    summary="Read a table",
)
async def read_table(caller: Reader, name: str, request: Request) -> Response:
    """All rows of a table."""
    row_format, soup = response_format(request, caller, None), caller.soup

    def read() -> Rendered:
        table = soup.table(name)
        if table.num_rows > row_format.max_rows:
            raise TooLarge(
                f"a response may have at most {row_format.max_rows:,} rows, the table has {table.num_rows:,}"
            )
        return render_table(table, row_format)

    return to_response(await caller.service.compute(caller.principal, read))


@router.put(
    "/v1/tables/{name}/rows",
    response_model=shapes.TableInfo,
    responses=describe_errors(404),
    openapi_extra=describe_row_body(),
    summary="Replace the rows of a table",
)
async def replace_table(caller: Writer, name: str, request: Request) -> Response:
    """Replace all rows of a table in one step."""
    media_type, body = await read_row_body(request)
    soup, settings = caller.soup, caller.service.settings

    def replace() -> dict[str, Any]:
        table = find_table(soup, name)
        rows = parse_rows(media_type, body, lambda: Schema.parse(table["schema"]), settings)
        soup.replace_table(name, rows)
        return find_table(soup, name)

    return json_response(await asyncio.to_thread(replace))


def find_table(soup: Soup, name: str) -> dict[str, Any]:
    """The JSON object of a table."""
    tables = soup.tables()
    table = next((table for table in tables if name_key(table["name"]) == name_key(name)), None)
    if table is None:
        hint = nearest(name, [table["name"] for table in tables])
        raise UnknownTable(f"there is no table named '{name}'", hint=hint)
    return table
