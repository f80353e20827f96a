"""Routes of peers, for admins: the servers to receive from, and the streams that others may see."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tureen.errors import UnknownPeer
from tureen.schema import name_key
from tureen.service import network_shapes as shapes
from tureen.service.routes.descriptions import describe_errors, without_content
from tureen.service.routes.parameters import Admin, After, Limit
from tureen.service.routes.responses import json_response, page
from tureen.soup.embedded import Soup

router = APIRouter(tags=["peers"])


@router.post(
    "/v1/peers", status_code=201, response_model=shapes.PeerEntry, responses=describe_errors(409), summary="Add a peer"
)
async def add_peer(caller: Admin, body: shapes.NewPeer) -> Response:
    """Receive streams from another server; it need not answer yet."""

    def add() -> dict[str, Any]:
        caller.soup.add_peer(body.name, body.url, token=body.token, ca=body.ca)
        return find_peer(caller.soup, body.name)

    return json_response(await asyncio.to_thread(add), 201)


@router.get("/v1/peers", response_model=shapes.PeerList, responses=describe_errors(), summary="List peers")
async def show_peers(caller: Admin, limit: Limit = 100, after: After = None) -> Response:
    """The peers and their state, without their tokens."""
    peers = await asyncio.to_thread(caller.soup.peers)
    listed, next_page = page(peers, limit, after, lambda peer: str(peer["name"]))
    return json_response({"peers": listed, "next": next_page})


@router.delete("/v1/peers/{name}", summary="Remove a peer", **without_content(404))
async def drop_peer(caller: Admin, name: str) -> Response:
    """Receive nothing from a peer any more, and share nothing with it."""
    await asyncio.to_thread(caller.soup.remove_peer, name)
    return Response(status_code=204)


@router.put("/v1/peers/{name}/shares/{stream}", summary="Share a stream", **without_content(404))
async def share_stream(caller: Admin, name: str, stream: str) -> Response:
    """Let a peer receive a stream."""
    await asyncio.to_thread(caller.soup.share_stream, name, stream)
    return Response(status_code=204)


@router.delete("/v1/peers/{name}/shares/{stream}", summary="Withdraw a stream", **without_content(404))
async def unshare_stream(caller: Admin, name: str, stream: str) -> Response:
    """Withdraw a stream from a peer; it stops receiving."""
    await asyncio.to_thread(caller.soup.unshare_stream, name, stream)
    return Response(status_code=204)


def find_peer(soup: Soup, name: str) -> dict[str, Any]:
    """The JSON object of a peer."""
    peer = next((entry for entry in soup.peers() if name_key(entry["name"]) == name_key(name)), None)
    if peer is None:
        raise UnknownPeer(f"there is no peer named '{name}'")
    return peer
