"""The server itself: is it well, how far is it, what does it count, what can it do."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from tureen.errors import ServiceError
from tureen.pot.status import count_owned
from tureen.service import body_shapes as shapes
from tureen.service.api_page import reference
from tureen.service.authorization import Caller, Needs
from tureen.service.error_responses import Refusal
from tureen.service.routes.common import Anyone, Reader, Seconds, problems, reply, without_source_details
from tureen.service.state import Service
from tureen.soup.open_pot import NO_ENGINE, STARTING

router = APIRouter(tags=["server"])


@router.get("/v1/status", response_model=dict[str, Any], responses=problems(), summary="Show how far things are")
async def status(caller: Reader) -> Response:
    """Streams with their rows, runs, tails, debts and lag; tables; how many queries; the engine."""
    found = await asyncio.to_thread(caller.soup.status)
    return reply(found if caller.may("admin") else await asyncio.to_thread(_own_status, caller, found))


def _own_status(caller: Caller, found: dict[str, Any]) -> dict[str, Any]:
    """The status without what depends on others' queries, by which one could find out what they ask."""
    with caller.service.catalog.read() as tx:
        queries = count_owned(tx, caller.principal)
    streams = {
        name: {
            key: without_source_details(value) if key == "error" else value
            for key, value in one.items()
            if key not in _OF_QUERIES
        }
        for name, one in found["streams"].items()
    }
    return {**{key: value for key, value in found.items() if key != "clauses"}, "streams": streams, "queries": queries}


_OF_QUERIES = frozenset({"bytes", "query_runs", "eager_clauses", "cell_files", "debts"})


@router.get("/v1/wait", response_model=shapes.Waited, responses=problems(404, 408, 429), summary="Wait for a position")
async def wait(
    caller: Anyone,
    position: Annotated[list[str], Query(min_length=1, max_length=100, description="what must be in")],
    timeout: Seconds = None,
) -> Response:
    """Answer when what was pushed is in."""
    await caller.service.wait(caller.principal, position, timeout)
    return reply({"position": max(position)})


@router.get(
    "/metrics",
    responses={200: {"description": "Prometheus' text.", "content": {"text/plain": {}}}, **problems()},
    response_class=Response,
    summary="Count",
)
async def metrics(request: Request) -> Response:
    """Sums over all streams, queries and principals."""
    service: Service = request.app.state.service
    if not service.settings.open_metrics:
        await Needs("admin")(request)
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@router.head("/healthz", include_in_schema=False)
@router.get(
    "/healthz",
    response_model=shapes.Health,
    responses={503: {"model": shapes.Problem, "description": "Not ready, and why."}},
    summary="Tell whether rows can be taken and answered",
)
async def healthz(request: Request) -> Response:
    """Whether the server is ready."""
    service: Service = request.app.state.service
    trouble = "the server stops" if service.watcher.closing else service.soup.trouble()
    if trouble is not None:
        raise Refusal(503, "not ready", detail=trouble if _is_known(request, service) else _without_details(trouble))
    return reply({"status": "ok"})


def _is_known(request: Request, service: Service) -> bool:
    """Whether a request has a token that is good for anything."""
    try:
        service.gate.admit(request, service)
    except ServiceError:
        return False
    return True


def _without_details(trouble: str) -> str:
    """What anybody may know of what is wrong; an error of the pipeline may name files, hosts and users."""
    return trouble if trouble in PLAIN_TROUBLES else "the pipeline does not run; a request with a token is told why"


PLAIN_TROUBLES = frozenset({"the server stops", STARTING, NO_ENGINE})


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
async def docs(request: Request) -> Response:
    """The description of all routes, as a page without scripts."""
    return HTMLResponse(reference(request.app.openapi()))
