"""Access tokens in the catalog: principals and their scopes. Only hashes of the secrets are stored.

A token is `tureen_<id>_<secret>`. The id selects its row, and the SHA-256 of the secret, which is 256 random bits, is
compared with the stored one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from tureen.arguments import check_name, check_text
from tureen.errors import TureenError, UnknownToken
from tureen.pot.catalog_tables import tokens
from tureen.pot.transaction import Transaction

SCOPES = ("read", "write", "admin", "peer")

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

    def accepts(self, secret: str, now: int) -> bool:
        """Whether the secret matches and the token has not expired."""
        matches = hmac.compare_digest(self.digest, _digest(secret))
        return matches and (self.expires_at is None or now < self.expires_at)


def split_token(text: str) -> tuple[str, str] | None:
    """The id and the secret of a token, or None if the text is not a token.

    >>> split_token("tureen_0123456789abcdef_" + 43 * "x")[0]
    '0123456789abcdef'
    >>> split_token("secret") is None
    True
    """
    match = _TOKEN.fullmatch(text)
    return None if match is None else (match.group(1), match.group(2))


def create_token(
    tx: Transaction,
    principal: str,
    scopes: Iterable[str],
    *,
    now: int,
    expires_at: int | None = None,
    note: str | None = None,
) -> tuple[Token, str]:
    """Create a token; return its stored form, and its text, which is not stored."""
    principal = check_name(principal, "principal")
    if note is not None:
        check_text(note, "a note")
    granted = frozenset(scopes)
    if not granted or not granted <= set(SCOPES):
        unknown = ", ".join(sorted(granted - set(SCOPES)))
        problem = f"unknown scope: {unknown}" if unknown else "a token must have at least one scope"
        raise TureenError(problem, hint=f"the scopes are {', '.join(SCOPES)}")
    token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    token = Token(token_id, principal, granted, note, _digest(secret), now, expires_at, None)
    tx.execute(
        insert(tokens).values(
            id=token.id,
            principal=token.principal,
            scopes=" ".join(sorted(token.scopes)),
            note=token.note,
            digest=token.digest,
            created_at=token.created_at,
            expires_at=token.expires_at,
        )
    )
    return token, f"tureen_{token_id}_{secret}"


def list_tokens(tx: Transaction) -> list[Token]:
    """All tokens, in order of creation."""
    return [_token(row) for row in tx.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id))]


def revoke_token(tx: Transaction, token_id: str) -> None:
    """Revoke a token."""
    if not tx.execute(delete(tokens).where(tokens.c.id == token_id)).rowcount:
        raise UnknownToken(f"there is no token '{token_id}'", hint="list them to see their ids")


def count_tokens(tx: Transaction) -> int:
    """The number of tokens."""
    return int(tx.execute(select(func.count()).select_from(tokens)).scalar_one())


def note_use(tx: Transaction, used: Mapping[str, int]) -> None:
    """Store the times when tokens were last used."""
    for token_id, time in used.items():
        tx.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_at=time))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> Token:
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
