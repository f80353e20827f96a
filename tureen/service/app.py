"""The application: all routes, their error handler, and their OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from tureen.errors import TureenError
from tureen.fast_paths import FastPath, is_enabled
from tureen.service.bodies import media_type_of
from tureen.service.error_responses import HttpError, error_response
from tureen.service.fast_path import InvocationFastPath
from tureen.service.middleware import RequestMiddleware
from tureen.service.routes import (
    flows,
    functions,
    health,
    network,
    page,
    peers,
    queries,
    statements,
    streams,
    tables,
    templates,
    tokens,
)
from tureen.service.state import Service

ROUTERS = (streams, queries, templates, tables, functions, statements, health, tokens, peers, flows, network, page)
"""The modules with routes, in the order in which they are described."""


def make_app(service: Service) -> ASGIApp:
    """Build the application of a server."""
    app = routed_app(service)
    return RequestMiddleware(InvocationFastPath(app) if is_enabled(FastPath.HTTP_FAST_PATH) else app, service)


def description() -> dict[str, Any]:
    """The OpenAPI description of all routes; needs no server."""
    return routed_app(None).openapi()


def routed_app(service: Service | None) -> FastAPI:
    """The routes without middleware; without a service they can be described, not called."""

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
        # A path with a trailing slash is answered with 404, not with a redirect.
        redirect_slashes=False,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    for error_class in (TureenError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(error_class, _handle_error)
    for module in ROUTERS:
        app.include_router(module.router)
    return app


async def _handle_error(request: Request, error: Exception) -> Response:
    request_id = request.scope.get("tureen.request", "-")
    if isinstance(error, RequestValidationError) and _is_not_json(request, error):
        media_type = media_type_of(request)[:80]
        message = f"the body must be application/json, got '{media_type}'"
        error = HttpError(415, message, hint="send the header 'Content-Type: application/json'")
    return error_response(error, request_id)


def _is_not_json(request: Request, error: RequestValidationError) -> bool:
    """Whether a body failed validation because its media type is not JSON."""
    in_body = any(failure["loc"][:1] == ("body",) for failure in error.errors())
    return in_body and media_type_of(request) != "application/json"
