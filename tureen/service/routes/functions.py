"""Routes of user functions: create, list and drop."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tureen.errors import UnknownFunction, nearest
from tureen.functions.user_function import function_key
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.routes.descriptions import describe_errors, without_content
from tureen.service.routes.parameters import Admin, After, Limit, Reader
from tureen.service.routes.responses import json_response, page
from tureen.soup.embedded import Soup

router = APIRouter(tags=["functions"])


@router.post(
    "/v1/functions",
    status_code=201,
    response_model=shapes.FunctionInfo,
    responses=describe_errors(409),
    summary="Create a function",
)
async def create_function(caller: Admin, body: shapes.NewFunction) -> Response:
    """Create a function from its source or its import path; its code runs with the rights of the server."""
    soup = caller.soup

    def create() -> dict[str, Any]:
        soup.define_function(
            body.name,
            source=body.source,
            path=body.path,
            returns=body.returns,
            arguments=body.arguments,
            vectorized=body.vectorized,
            replace=body.replace,
        )
        return find_function(soup, body.name)

    return json_response(await asyncio.to_thread(create), 201)


@router.get("/v1/functions", response_model=shapes.FunctionList, responses=describe_errors(), summary="List functions")
async def show_functions(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """The functions, in order of creation; only admins see their code."""
    functions = await asyncio.to_thread(caller.soup.functions)
    listed, next_page = page(functions, limit, after, lambda function: str(function["name"]))
    return json_response({"functions": [visible_function(caller, function) for function in listed], "next": next_page})


@router.delete("/v1/functions/{name}", summary="Drop a function", **without_content(404, 409))
async def drop_function(caller: Admin, name: str) -> Response:
    """Drop a function that no query calls."""
    await asyncio.to_thread(caller.soup.drop_function, name)
    return Response(status_code=204)


def find_function(soup: Soup, name: str) -> dict[str, Any]:
    """The JSON object of a function."""
    functions = soup.functions()
    function = next((entry for entry in functions if function_key(entry["name"]) == function_key(name)), None)
    if function is None:
        hint = nearest(name, [entry["name"] for entry in functions])
        raise UnknownFunction(f"there is no function named '{name}'", hint=hint)
    return function


def visible_function(caller: Caller, function: dict[str, Any]) -> dict[str, Any]:
    """A function, for callers other than admins without its code, which may contain passwords."""
    return function if caller.has_scope("admin") else {**function, "source": None, "path": None}
