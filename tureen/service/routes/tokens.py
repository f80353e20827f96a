"""Routes of tokens: create, list and revoke."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tureen.language import parse_duration
from tureen.pot.catalog import micros_now
from tureen.pot.tokens import Token, create_token, list_tokens, revoke_token
from tureen.service import body_shapes as shapes
from tureen.service.routes.descriptions import describe_errors, without_content
from tureen.service.routes.parameters import Admin, After, Limit
from tureen.service.routes.responses import json_response, page
from tureen.window import from_micros

router = APIRouter(tags=["tokens"])


@router.post(
    "/v1/tokens",
    status_code=201,
    response_model=shapes.CreatedToken,
    responses=describe_errors(),
    summary="Create a token",
)
async def make_token(caller: Admin, body: shapes.NewToken) -> Response:
    """Create a token; this response alone contains its text."""
    catalog = caller.service.catalog

    def create() -> dict[str, Any]:
        now = micros_now()
        expires_at = None if body.expires_in is None else now + parse_duration(body.expires_in)
        with catalog.write() as tx:
            token, text = create_token(tx, body.principal, body.scopes, now=now, expires_at=expires_at, note=body.note)
        return {**token_info(token), "token": text}

    return json_response(await asyncio.to_thread(create), 201, {"Cache-Control": "no-store"})


@router.get("/v1/tokens", response_model=shapes.TokenList, responses=describe_errors(), summary="List tokens")
async def show_tokens(caller: Admin, limit: Limit = 100, after: After = None) -> Response:
    """All tokens, in order of creation, without their secrets."""
    catalog, authenticator = caller.service.catalog, caller.service.authenticator

    def read() -> dict[str, Any]:
        authenticator.record_use(at_once=True)
        with catalog.read() as tx:
            page_tokens, next_page = page(list_tokens(tx), limit, after, lambda token: token.id)
        return {"tokens": [token_info(token) for token in page_tokens], "next": next_page}

    return json_response(await asyncio.to_thread(read))


@router.delete("/v1/tokens/{token_id}", summary="Revoke a token", **without_content(404))
async def drop_token(caller: Admin, token_id: str) -> Response:
    """Revoke a token."""
    catalog = caller.service.catalog

    def revoke() -> None:
        with catalog.write() as tx:
            revoke_token(tx, token_id)

    await asyncio.to_thread(revoke)
    return Response(status_code=204)


def token_info(token: Token) -> dict[str, Any]:
    """The JSON object of a token, without its secret."""
    times = {"created_at": token.created_at, "expires_at": token.expires_at, "last_used_at": token.last_used_at}
    return {
        "id": token.id,
        "principal": token.principal,
        "scopes": sorted(token.scopes),
        "note": token.note,
        **{name: None if micros is None else from_micros(micros) for name, micros in times.items()},
    }
