"""The application: all routes, one shape of error, and its description for programs and people."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tureen.errors import TureenError
from tureen.service.authorization import Needs
from tureen.service.bodies import media_type
from tureen.service.error_responses import Refusal, problem
from tureen.service.middleware import Frame
from tureen.service.routes import health as server
from tureen.service.routes import queries, statements, streams, tables, templates, tokens
from tureen.service.state import Service

ROUTERS = (streams, queries, templates, tables, statements, server, tokens)
"""The modules with routes, in the order in which they are described."""


def make_app(service: Service) -> ASGIApp:
    """The application of a server."""
    return Frame(Shortcut(bare_app(service), service), service)


class Shortcut:
    """The way that polls take: a plain invocation skips the search for its route and its parameters."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        """Stand before that application, which answers everything else, and this as well."""
        self._app, self._service = app, service
        self._route = next(one for one in queries.router.routes if getattr(one, "path", "") == queries.RESULT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = _RESULT.fullmatch(scope["path"]) if scope["type"] == "http" and not scope["query_string"] else None
        if found is None or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        scope["app"], scope["route"] = self._app, self._route
        request = Request(scope, receive)
        try:
            response = await queries.invoke_query(await _READS(request), found.group(1), request)
        except (TureenError, HTTPException) as error:
            response = problem(error, scope["tureen.request"])
        await response(scope, receive, send)


_RESULT = re.compile(queries.RESULT.replace("{handle}", "([0-9a-f.]{32,51})"))
_READS = Needs("read")


def description() -> dict[str, Any]:
    """The routes as OpenAPI describes them; needs no server."""
    return bare_app(None).openapi()


def bare_app(service: Service | None) -> FastAPI:
    """The routes alone, without what is around every request; without a service, to be described only."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if service is not None:
            await service.start()
        yield

    app = FastAPI(
        title="Tureen",
        summary="Thousands of standing SQL queries over live streams.",
        version="1",
        docs_url=None,
        redoc_url=None,
        # An address with one slash too many is not there, and gets the answer that says so.
        redirect_slashes=False,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    for kind in (TureenError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _problem)
    for module in ROUTERS:
        app.include_router(module.router)
    return app


async def _problem(request: Request, error: Exception) -> Response:
    request_id = request.scope.get("tureen.request", "-")
    if isinstance(error, RequestValidationError) and _wrong_type(request, error):
        kind = media_type(request) or "nothing that is said"
        error = Refusal(415, f"this body comes as {kind[:80]}", hint="send application/json")
    return problem(error, request_id)


def _wrong_type(request: Request, error: RequestValidationError) -> bool:
    """Whether a body was not understood because it is no JSON at all."""
    return media_type(request) != "application/json" and any(one["loc"][:1] == ("body",) for one in error.errors())
