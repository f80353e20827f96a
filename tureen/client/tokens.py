"""Token management over HTTP, for admins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tureen.client.json_values import with_datetimes
from tureen.client.listings import pages, segment
from tureen.client.transport import Request, Transport


class RemoteTokens:
    """Creates, lists and revokes the tokens of a server."""

    def __init__(self, transport: Transport) -> None:
        """Send requests over that transport."""
        self._transport = transport

    def create(
        self, principal: str, scopes: Sequence[str], expires_in: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Create a token; its secret is in `token` and is not shown again."""
        options = {"principal": principal, "scopes": list(scopes), "expires_in": expires_in, "note": note}
        body = {key: value for key, value in options.items() if value is not None}
        return with_datetimes(self._transport.send(Request("POST", "/v1/tokens", json=body)).json())

    def list(self) -> list[dict[str, Any]]:
        """All tokens, without their secrets."""
        return [with_datetimes(entry) for entry in pages(self._transport, "/v1/tokens", "tokens")]

    def revoke(self, token_id: str) -> None:
        """Revoke a token."""
        self._transport.send(Request("DELETE", f"/v1/tokens/{segment(token_id)}"))
