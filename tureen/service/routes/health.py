"""The server itself: status, waiting for positions, metrics, readiness and the reference page."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tureen.errors import ServiceError
from tureen.service import body_shapes as shapes
from tureen.service.api_page import reference_page
from tureen.service.authorization import RequireScope
from tureen.service.error_responses import HttpError, encode_json
from tureen.service.recent_values import MAX_AGE, accepted_age
from tureen.service.routes.descriptions import describe_errors
from tureen.service.routes.parameters import Reader, ReaderOrWriter, Seconds
from tureen.service.routes.responses import encoded_response, json_response, visible_status
from tureen.service.state import Service
from tureen.soup.open_pot import NO_ENGINE

router = APIRouter(tags=["server"])


@router.get("/v1/status", response_model=dict[str, Any], responses=describe_errors(), summary="Show the status")
async def status(caller: Reader, request: Request) -> Response:
    """Streams with their rows, runs, tails, debts and lag; tables; the number of queries; the engine."""
    shared = await caller.service.status(accepted_age(request.headers))

    async def encode() -> bytes:
        return await asyncio.to_thread(lambda: encode_json(visible_status(caller, shared.full)))

    return encoded_response(await shared.responses.get(("status", caller.visibility), MAX_AGE, encode))


@router.get(
    "/v1/wait",
    response_model=shapes.ReachedPosition,
    responses=describe_errors(404, 408, 429, 502),
    summary="Wait for a position",
)
async def wait(
    caller: ReaderOrWriter,
    position: Annotated[list[str], Query(min_length=1, max_length=100, description="a position to wait for")],
    timeout: Seconds = None,
) -> Response:
    """Respond when all positions are reached."""
    await caller.service.wait(caller.principal, position, timeout)
    return json_response({"position": max(position)})


@router.get(
    "/metrics",
    responses={200: {"description": "Metrics.", "content": {"text/plain": {}}}, **describe_errors()},
    response_class=Response,
    summary="Show metrics",
)
async def metrics(request: Request) -> Response:
    """Sums over all streams, queries and principals, in Prometheus' text format."""
    service: Service = request.app.state.service
    if not service.settings.open_metrics:
        await RequireScope("admin")(request)
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.head("/healthz", include_in_schema=False)
@router.get(
    "/healthz",
    response_model=shapes.HealthStatus,
    responses={503: {"model": shapes.ErrorBody, "description": "Not ready, with the reason."}},
    summary="Check readiness",
)
async def healthz(request: Request) -> Response:
    """Whether the server accepts rows and answers queries, which it does while Spark starts."""
    service: Service = request.app.state.service
    trouble = STOPPING if service.watcher.closing else service.soup.trouble()
    if trouble is not None:
        detail = trouble if _is_authenticated(request, service) else _public_trouble(trouble)
        raise HttpError(503, "not ready", detail=detail)
    return json_response({"status": "ok", "pipeline": service.soup.pipeline()})


def _is_authenticated(request: Request, service: Service) -> bool:
    """Whether a request has a valid token."""
    try:
        service.authenticator.authenticate(request, service)
    except ServiceError:
        return False
    return True


def _public_trouble(trouble: str) -> str:
    """The reason for unauthenticated requests: an error of the pipeline may name files, hosts and users."""
    return trouble if trouble in PUBLIC_TROUBLES else "the pipeline is not running; requests with a token see why"


STOPPING = "the server is shutting down"
PUBLIC_TROUBLES = frozenset({STOPPING, NO_ENGINE})


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
async def docs(request: Request) -> Response:
    """The reference of all routes as HTML."""
    return HTMLResponse(reference_page(request.app.openapi()))
