"""The application: all routes, one shape of error, and its description for programs and people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from tureen.errors import TureenError
from tureen.service.bodies import media_type
from tureen.service.frame import Frame
from tureen.service.problems import Refusal, problem
from tureen.service.routes import queries, server, statements, streams, tables, templates, tokens
from tureen.service.state import Service

ROUTERS = (streams, queries, templates, tables, statements, server, tokens)
"""The modules with routes, in the order in which they are described."""


def make_app(service: Service) -> ASGIApp:
    """The application of a server."""
    return Frame(bare_app(service), service)


def bare_app(service: Service) -> FastAPI:
    """The routes alone, without what is around every request."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield

    app = FastAPI(
        title="Tureen",
        summary="Thousands of standing SQL queries over live streams.",
        version="1",
        docs_url=None,
        redoc_url=None,
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
