"""The network: routes by which servers plan together what they receive from each other, and what people see of it."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from tureen.federation.askers import PLAN_SECONDS
from tureen.federation.neighbour import FLOWS_PATH, NETWORK_PATH, SAMPLE_PATH
from tureen.service import network_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.routes.descriptions import describe_errors
from tureen.service.routes.parameters import Admin, PeerCaller
from tureen.service.routes.responses import json_response

router = APIRouter(tags=["federation"])

Prefer = Annotated[str | None, Header(description="how long the caller waits, as in `wait=5`")]


@router.post(
    NETWORK_PATH, response_model=shapes.PeerReports, responses=describe_errors(404), summary="Show flows of a stream"
)
async def show_flows(caller: PeerCaller, body: shapes.StreamQuestion, prefer: Prefer = None) -> Response:
    """What this server, and those from which it can receive the stream, receive of it."""
    return await _answer(caller, "POST", NETWORK_PATH, body, prefer)


@router.post(
    SAMPLE_PATH, response_model=shapes.SampleBody, responses=describe_errors(404), summary="Show a sample of a stream"
)
async def show_sample(caller: PeerCaller, body: shapes.StreamQuestion, prefer: Prefer = None) -> Response:
    """Some of the newest rows of a shared stream, from which peers estimate what a flow transports."""
    return await _answer(caller, "POST", SAMPLE_PATH, body, prefer)


@router.post(FLOWS_PATH, response_model=dict[str, Any], responses=describe_errors(404), summary="Have a flow")
async def have_flow(caller: PeerCaller, body: shapes.NeededFlow, prefer: Prefer = None) -> Response:
    """Receive what the caller is going to ask for, if it is not here yet, and keep it."""
    return await _answer(caller, "POST", FLOWS_PATH, body, prefer)


@router.put(FLOWS_PATH, response_model=shapes.MissingFlows, responses=describe_errors(), summary="Name flows in use")
async def renew_flows(caller: PeerCaller, body: shapes.FlowsInUse, prefer: Prefer = None) -> Response:
    """Keep the flows that the caller names, and no others for it."""
    return await _answer(caller, "PUT", FLOWS_PATH, body, prefer)


@router.get("/v1/network", response_model=dict[str, Any], responses=describe_errors(), summary="Show the network")
async def show_network(caller: Admin) -> Response:
    """What this server receives from its peers, and what these tell about the streams that cross the network."""
    return json_response(await asyncio.to_thread(caller.soup.network))


async def _answer(caller: Caller, method: str, path: str, body: shapes.PeerRequest, prefer: str | None) -> Response:
    requests, seconds = caller.service.federation.serving.requests, _preferred_wait(prefer)
    return json_response(await asyncio.to_thread(requests, caller.principal, method, path, body.model_dump(), seconds))


def _preferred_wait(header: str | None) -> float:
    """The seconds in a header `Prefer: wait=…` (RFC 7240); without a valid one, the longest time."""
    match = re.search(r"\bwait=(\d{1,6}(?:\.\d{1,6})?)", header or "")
    return PLAN_SECONDS if match is None else float(match[1])
