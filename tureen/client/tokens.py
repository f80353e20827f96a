"""The tokens of a server, for its admins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tureen.client.json_values import dated
from tureen.client.listings import pages, segment
from tureen.client.transport import Request, Transport


class Tokens:
    """Makes, lists and revokes the tokens of a server."""

    def __init__(self, transport: Transport) -> None:
        """Speak to that server."""
        self._transport = transport

    def create(
        self, principal: str, scopes: Sequence[str], expires_in: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Make a token; its secret is in `token`, and cannot be had again."""
        wanted = {"principal": principal, "scopes": list(scopes), "expires_in": expires_in, "note": note}
        body = {key: value for key, value in wanted.items() if value is not None}
        return dated(self._transport.send(Request("POST", "/v1/tokens", json=body)).json())

    def list(self) -> list[dict[str, Any]]:
        """All tokens, without their secrets."""
        return [dated(one) for one in pages(self._transport, "/v1/tokens", "tokens")]

    def revoke(self, token_id: str) -> None:
        """Let a token open nothing any more."""
        self._transport.send(Request("DELETE", f"/v1/tokens/{segment(token_id)}"))
