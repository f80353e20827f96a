"""Tokens in the catalog: who may do what; kept as hashes, so that the catalog gives none of them away.

A token is `tureen_<id>_<secret>`. The id finds its row, and the SHA-256 of the secret, which is 256 random bits, is
compared with what is kept there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from tureen.arguments import check_name, check_text
from tureen.errors import TureenError, UnknownToken
from tureen.pot.catalog_tables import tokens

SCOPES = ("read", "write", "admin")

_TOKEN = re.compile(r"tureen_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the catalog has it."""

    id: str
    principal: str
    scopes: frozenset[str]
    note: str | None
    digest: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None

    def may(self, scope: str) -> bool:
        """Whether it has that scope; an admin has all."""
        return scope in self.scopes or "admin" in self.scopes

    def opens(self, secret: str, now: int) -> bool:
        """Whether that secret is its own and it has not expired."""
        same = hmac.compare_digest(self.digest, _digest(secret))
        return same and (self.expires_at is None or now < self.expires_at)


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token, or None where the text is no token.

    >>> split_token("tureen_0123456789abcdef_" + 43 * "x")[0]
    '0123456789abcdef'
    >>> split_token("secret") is None
    True
    """
    found = _TOKEN.fullmatch(text)
    return None if found is None else (found.group(1), found.group(2))


def create_token(
    tx: Connection,
    principal: str,
    scopes: Iterable[str],
    *,
    now: int,
    expires_at: int | None = None,
    note: str | None = None,
) -> tuple[Token, str]:
    """Make a token; return what is kept of it, and the text that is shown once."""
    principal = check_name(principal, "principal")
    if note is not None:
        check_text(note, "a note")
    wanted = frozenset(scopes)
    if not wanted or not wanted <= set(SCOPES):
        odd = ", ".join(sorted(wanted - set(SCOPES)))
        raise TureenError(f"no such scope: {odd}" if odd else "a token needs a scope", hint=f"of {', '.join(SCOPES)}")
    token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    made = Token(token_id, principal, wanted, note, _digest(secret), now, expires_at, None)
    tx.execute(
        insert(tokens).values(
            id=made.id,
            principal=made.principal,
            scopes=" ".join(sorted(made.scopes)),
            note=made.note,
            digest=made.digest,
            created_at=made.created_at,
            expires_at=made.expires_at,
        )
    )
    return made, f"tureen_{token_id}_{secret}"


def list_tokens(tx: Connection) -> list[Token]:
    """All tokens, in order of creation."""
    return [_token(row) for row in tx.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id))]


def revoke_token(tx: Connection, token_id: str) -> None:
    """Let a token open nothing any more."""
    if not tx.execute(delete(tokens).where(tokens.c.id == token_id)).rowcount:
        raise UnknownToken(f"there is no token '{token_id}'", hint="list them to see their ids")


def count_tokens(tx: Connection) -> int:
    """How many tokens there are."""
    return int(tx.execute(select(func.count()).select_from(tokens)).scalar_one())


def note_use(tx: Connection, used: Mapping[str, int]) -> None:
    """Keep when tokens were last used."""
    for token_id, at in used.items():
        tx.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_at=at))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Row[Any]) -> Token:
    return Token(
        id=row.id,
        principal=row.principal,
        scopes=frozenset(row.scopes.split()),
        note=row.note,
        digest=row.digest,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )
