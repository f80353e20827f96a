"""Token management on a local pot: write access to its files is sufficient."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tureen.arguments import check_path
from tureen.language import parse_duration
from tureen.pot import tokens as access
from tureen.pot.catalog import Catalog, micros_now
from tureen.window import from_micros


class PotTokens:
    """Creates, lists and revokes the tokens of a pot, which a server may have open."""

    def __init__(self, pot: str | Path) -> None:
        """Use the pot in that directory."""
        self._path = check_path(pot).absolute()

    def create(
        self, principal: str, scopes: Sequence[str], expires_in: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Create a token; its secret is in `token` and is not shown again."""
        now = micros_now()
        expires_at = None if expires_in is None else now + parse_duration(expires_in)
        with Catalog(self._path) as catalog, catalog.write() as tx:
            token, secret = access.create_token(tx, principal, scopes, now=now, expires_at=expires_at, note=note)
        return {**_description(token), "token": secret}

    def list(self) -> list[dict[str, Any]]:
        """All tokens, without their secrets."""
        with Catalog(self._path) as catalog, catalog.read() as tx:
            return [_description(token) for token in access.list_tokens(tx)]

    def revoke(self, token_id: str) -> None:
        """Revoke a token."""
        with Catalog(self._path) as catalog, catalog.write() as tx:
            access.revoke_token(tx, token_id)


def _description(token: access.Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "principal": token.principal,
        "scopes": sorted(token.scopes),
        "note": token.note,
        "created_at": from_micros(token.created_at),
        "expires_at": None if token.expires_at is None else from_micros(token.expires_at),
        "last_used_at": None if token.last_used_at is None else from_micros(token.last_used_at),
    }
