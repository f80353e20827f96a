"""Routes for peers: what is shared with them, and flows of it. The principal of a peer's token is its name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from tureen.errors import TureenError, UnknownStream
from tureen.federation.flow_reader import FlowReader
from tureen.federation.frame import MEDIA_TYPE, FlowFrame, encode_error, encode_frame
from tureen.federation.neighbour import HEARTBEAT, FlowRequest
from tureen.service import network_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.routes.descriptions import describe_errors
from tureen.service.routes.parameters import PeerCaller, Seconds
from tureen.service.routes.responses import json_response
from tureen.service.watcher import ProgressWatcher

router = APIRouter(tags=["federation"])

PAUSE_SECONDS = 0.005
"""After rows were sent, others that come within this time are sent together."""


@router.get("/v1/federation", response_model=shapes.PeerDescription, responses=describe_errors(), summary="Show shares")
async def describe_server(caller: PeerCaller) -> Response:
    """The name of this server, and the streams that are shared with the caller."""
    info = await asyncio.to_thread(caller.service.federation.serving.info, caller.principal)
    return json_response(info.as_json())


@router.get(
    "/v1/federation/flow",
    responses={
        200: {"description": "Frames, without end.", "content": {MEDIA_TYPE: {}}},
        **describe_errors(404, 429, 431),
    },
    response_class=StreamingResponse,
    summary="Receive a flow",
)
async def send_flow(
    caller: PeerCaller,
    flow: Annotated[
        str, Query(max_length=1_000_000, description="the columns and conditions, as SELECT … FROM … WHERE …")
    ],
    origin: Annotated[
        str, Query(max_length=1_000, description="the identity of the stream, as /v1/federation tells it")
    ],
    after: Annotated[int, Query(ge=0, lt=10**18, description="the first tuple id to send")] = 0,
    punctuations: Annotated[
        int | None,
        Query(ge=0, lt=10**18, description="the tuple id from which on punctuations are sent: `after`, or 0 for all"),
    ] = None,
) -> Response:
    """Tuples of a shared stream from an id on: those that are stored, then new ones, until the caller disconnects."""
    service, request = caller.service, FlowRequest(flow, origin, after, punctuations)
    service.federation.serving.sent.check(caller.principal)
    reader = await asyncio.to_thread(service.federation.serving.reader, caller.principal, request)
    return StreamingResponse(
        _frames(caller, reader, request), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"}
    )


@router.get(
    "/v1/federation/marks",
    response_model=shapes.StreamMarks,
    responses=describe_errors(404, 408, 429),
    summary="Locate a position",
)
async def locate_position(
    caller: PeerCaller,
    position: Annotated[str, Query(max_length=1_000, description="a position of this server")],
    timeout: Seconds = None,
) -> Response:
    """The next tuple id of each shared stream once a position is reached: what a receiver waits for."""
    await caller.service.wait(caller.principal, [position], timeout)
    marks = await asyncio.to_thread(caller.service.federation.serving.next_ids, caller.principal)
    return json_response({"streams": marks})


async def _frames(caller: Caller, reader: FlowReader, request: FlowRequest) -> AsyncIterator[bytes]:
    """The frames of a flow, until the stream is not shared any more or the server stops."""
    service, peer = caller.service, caller.principal
    serving, watcher = service.federation.serving, service.watcher
    try:
        with serving.sent.sending(peer, request) as sent:
            while not watcher.closing:
                version = watcher.version
                frames = await asyncio.to_thread(reader.read)
                for frame in frames:
                    content = await asyncio.to_thread(encode_frame, frame)
                    sent.rows += 0 if frame.rows is None else frame.rows.num_rows
                    sent.bytes += len(content)
                    yield content
                    async for heartbeat in _pause(serving.sent.pace.pause(peer, len(content)), frame, watcher):
                        yield heartbeat
                if frames[-1].current:
                    await asyncio.sleep(PAUSE_SECONDS)
                    await watcher.wait_for_news(version, HEARTBEAT)
                # The token or the share may have been withdrawn since.
                caller.check_token()
                if not await asyncio.to_thread(serving.is_shared, peer, request.origin):
                    raise UnknownStream("the stream is not shared any more")
    except TureenError as error:
        yield encode_error(error)


async def _pause(seconds: float, frame: FlowFrame, watcher: ProgressWatcher) -> AsyncIterator[bytes]:
    """Wait after a frame because its peer gets too many bytes per second; frames without rows tell that it goes on."""
    while seconds > 0 and not watcher.closing:
        await asyncio.sleep(min(seconds, HEARTBEAT))
        seconds -= HEARTBEAT
        if seconds > 0:
            yield encode_frame(FlowFrame(frame.next_id, frame.last_time, current=frame.current, away=frame.away))
