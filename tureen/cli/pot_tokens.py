"""The tokens of a pot of this machine: whoever may write its files may see to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tureen.arguments import check_path
from tureen.language import parse_duration
from tureen.pot import tokens as access
from tureen.pot.catalog import Catalog, micros_now
from tureen.window import from_micros


class PotTokens:
    """Makes, lists and revokes the tokens of a pot, whether a server runs on it or not."""

    def __init__(self, pot: str | Path) -> None:
        """Work on the pot in that directory."""
        self._path = check_path(pot).absolute()

    def create(
        self, principal: str, scopes: Sequence[str], expires_in: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Make a token; its secret is in `token`, and cannot be had again."""
        now = micros_now()
        until = None if expires_in is None else now + parse_duration(expires_in)
        with self._catalog() as catalog, catalog.write() as tx:
            made, text = access.create_token(tx, principal, scopes, now=now, expires_at=until, note=note)
        return {**_described(made), "token": text}

    def list(self) -> list[dict[str, Any]]:
        """All tokens, without their secrets."""
        with self._catalog() as catalog, catalog.read() as tx:
            return [_described(one) for one in access.list_tokens(tx)]

    def revoke(self, token_id: str) -> None:
        """Let a token open nothing any more."""
        with self._catalog() as catalog, catalog.write() as tx:
            access.revoke_token(tx, token_id)

    @contextmanager
    def _catalog(self) -> Iterator[Catalog]:
        catalog = Catalog(self._path)
        try:
            yield catalog
        finally:
            catalog.close()


def _described(token: access.Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "principal": token.principal,
        "scopes": sorted(token.scopes),
        "note": token.note,
        "created_at": from_micros(token.created_at),
        "expires_at": None if token.expires_at is None else from_micros(token.expires_at),
        "last_used_at": None if token.last_used_at is None else from_micros(token.last_used_at),
    }
