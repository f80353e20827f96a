"""Tokens: made, listed and revoked by admins."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from tureen.language import parse_duration
from tureen.pot.catalog import micros_now
from tureen.pot.tokens import Token, create_token, list_tokens, revoke_token
from tureen.service import body_shapes as shapes
from tureen.service.routes.common import Admin, After, Limit, page, problems, reply
from tureen.window import from_micros

router = APIRouter(tags=["tokens"])


@router.post(
    "/v1/tokens", status_code=201, response_model=shapes.CreatedToken, responses=problems(), summary="Create a token"
)
async def make_token(caller: Admin, wanted: shapes.NewToken) -> Response:
    """Make a token; its text is shown now and never again."""
    catalog = caller.service.catalog

    def make() -> dict[str, Any]:
        now = micros_now()
        until = None if wanted.expires_in is None else now + parse_duration(wanted.expires_in)
        with catalog.write() as tx:
            token, text = create_token(tx, wanted.principal, wanted.scopes, now=now, expires_at=until, note=wanted.note)
        return {**shown_token(token), "token": text}

    return reply(await asyncio.to_thread(make), 201, {"Cache-Control": "no-store"})


@router.get("/v1/tokens", response_model=shapes.Tokens, responses=problems(), summary="List tokens")
async def show_tokens(caller: Admin, limit: Limit = 100, after: After = None) -> Response:
    """All tokens, in order of creation, without their secrets."""
    catalog, gate = caller.service.catalog, caller.service.gate

    def look() -> dict[str, Any]:
        gate.note_use(at_once=True)
        with catalog.read() as tx:
            some, following = page(list_tokens(tx), limit, after, lambda one: one.id)
        return {"tokens": [shown_token(one) for one in some], "next": following}

    return reply(await asyncio.to_thread(look))


@router.delete(
    "/v1/tokens/{token_id}", status_code=204, response_class=Response, responses=problems(404), summary="Revoke a token"
)
async def drop_token(caller: Admin, token_id: str) -> Response:
    """Let a token open nothing any more."""
    catalog = caller.service.catalog

    def revoke() -> None:
        with catalog.write() as tx:
            revoke_token(tx, token_id)

    await asyncio.to_thread(revoke)
    return Response(status_code=204)


def shown_token(token: Token) -> dict[str, Any]:
    """A token without its secret."""
    times = {"created_at": token.created_at, "expires_at": token.expires_at, "last_used_at": token.last_used_at}
    return {
        "id": token.id,
        "principal": token.principal,
        "scopes": sorted(token.scopes),
        "note": token.note,
        **{name: None if at is None else from_micros(at) for name, at in times.items()},
    }
