"""Authentication by token, and the scopes and limits of each principal.

Tokens are looked up in memory and read again after each commit of the catalog.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection

from tureen.errors import Forbidden, TooMany, Unauthorized
from tureen.handle import is_query_handle
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.registered import LOCAL
from tureen.pot.tokens import Token, list_tokens, note_use, split_token
from tureen.service.settings import is_loopback

if TYPE_CHECKING:
    from tureen.service.state import Service
    from tureen.soup.served_soup import ServedSoup

log = logging.getLogger("tureen")


CALLER = "tureen.caller"
"""The key of a request's scope that holds its `Caller`."""

RECORD_USE_EVERY = 60.0
"""The seconds between two updates of the tokens' last use in the catalog."""


@dataclass(frozen=True)
class Caller:
    """The principal that sent a request, and the scopes of its token."""

    service: Service
    principal: str
    scopes: frozenset[str]
    token: str = field(default="", repr=False)
    """Its text; empty without authentication."""

    def check_token(self) -> Caller:
        """The caller now; raises Unauthorized if the token was revoked or has expired since the request began."""
        return self.service.authenticator.authenticate_token(self.token, self.service) if self.token else self

    @property
    def soup(self) -> ServedSoup:
        """The pot as this principal sees it."""
        return self.service.acting_for(self.principal)

    @property
    def visibility(self) -> str | None:
        """Whose objects a response about the whole pot tells of: None for those of all principals, which admins see."""
        return None if self.has_scope("admin") else self.principal

    def resolve_handle(self, handle_or_name: str) -> str:
        """The handle of a query, from its handle or name; a handle needs no look-up."""
        return handle_or_name if is_query_handle(handle_or_name) else self.soup.query(handle_or_name).id

    def soup_for(self, handle_or_name: str) -> ServedSoup:
        """The pot in which to look up a query or template: with a handle, an admin sees those of all principals."""
        return self.service.soup if self.has_scope("admin") and is_query_handle(handle_or_name) else self.soup

    def log_admin_access(self, action: str, target: str, owner: str) -> None:
        """Log an action of an admin on an object that belongs to another principal."""
        if owner != self.principal and self.has_scope("admin"):
            log.info("admin '%s' %s %s of '%s'", self.principal, action, target, owner)

    def has_scope(self, scope: str) -> bool:
        """Whether the token has a scope; the scope `admin` includes all others."""
        return scope in self.scopes or "admin" in self.scopes

    def require_scope(self, *scopes: str) -> None:
        """Raise Forbidden unless the token has at least one of the scopes."""
        if not any(self.has_scope(scope) for scope in scopes):
            raise Forbidden(
                f"a token with the scope '{' or '.join(scopes)}' is required",
                detail=f"the token has the scopes {', '.join(sorted(self.scopes))}",
            )


class Authenticator:
    """Identifies the caller of a request by its token."""

    def __init__(self, catalog: Catalog, *, open_to_all: bool) -> None:
        """Read the tokens of a catalog; if open to all, every caller is an admin."""
        self._catalog, self._open = catalog, open_to_all
        self._version = -1
        self._tokens: dict[str, Token] = {}
        self._verified: dict[str, Token] = {}
        self._last_used: dict[str, int] = {}
        self._recorded_at = time.monotonic()

    def authenticate(self, connection: HTTPConnection, service: Service) -> Caller:
        """The caller of a request; raises Unauthorized without a valid token."""
        if self._open:
            _require_loopback_host(connection)
            return Caller(service, LOCAL, frozenset({"admin"}))
        scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
        if not scheme:
            credentials = service.sessions.token_of(connection) or ""
        elif scheme.lower() != "bearer":
            credentials = ""
        if not credentials:
            raise Unauthorized("a token is required", hint="send the header 'Authorization: Bearer …'")
        return self.authenticate_token(credentials.strip(), service)

    def authenticate_token(self, text: str, service: Service) -> Caller:
        """The caller that has a token; raises Unauthorized if it is not valid."""
        token = self._verify(text)
        return Caller(service, token.principal, token.scopes, text)

    def _verify(self, text: str) -> Token:
        version = self._catalog.token()
        if version != self._version:
            # The commit may have created or revoked a token, in this process or another.
            with self._catalog.read() as tx:
                self._tokens = {token.id: token for token in list_tokens(tx)}
            self._verified, self._version = {}, version
        now = micros_now()
        token = self._verified.get(text)
        if token is None or (token.expires_at is not None and now >= token.expires_at):
            parts = split_token(text)
            token = None if parts is None else self._tokens.get(parts[0])
            if token is None or parts is None or not token.accepts(parts[1], now):
                raise Unauthorized("the token is not valid", hint="it may have expired or been revoked")
            self._verified[text] = token
        self._last_used[token.id] = now
        return token

    def record_use(self, *, at_once: bool = False) -> None:
        """Write the last use of tokens to the catalog; not often, because each write is a commit."""
        if self._last_used and (at_once or time.monotonic() - self._recorded_at >= RECORD_USE_EVERY):
            last_used, self._last_used, self._recorded_at = self._last_used, {}, time.monotonic()
            with self._catalog.write() as tx:
                note_use(tx, last_used)


def _require_loopback_host(connection: HTTPConnection) -> None:
    """Refuse requests that a browser sends for a page of another host (DNS rebinding)."""
    host = connection.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not is_loopback(name):
        raise Forbidden(
            f"without authentication the Host header must name a loopback address, got '{name[:80]}'",
            hint="use 127.0.0.1",
        )


class RequireScope(SecurityBase):
    """A route's dependency: its caller, who must have one of the given scopes."""

    def __init__(self, *scopes: str) -> None:
        """Require one of these scopes."""
        self.scopes = scopes
        self.model = HTTPBearer(description="A token of `tureen token create`.")
        self.scheme_name = "token"

    async def __call__(self, request: HTTPConnection) -> Caller:
        """The caller of a request; raises Forbidden without the scope."""
        caller: Caller | None = request.scope.get(CALLER)
        if caller is None:
            service: Service = request.app.state.service
            caller = service.authenticator.authenticate(request, service)
        caller.require_scope(*self.scopes)
        return caller


class ConcurrencyLimit:
    """A limit on concurrent operations of each principal."""

    def __init__(self, operations: str, limit: int) -> None:
        """Allow each principal `limit` operations at a time; `operations` names them in errors."""
        self._operations, self._limit = operations, limit
        self._running: Counter[str] = Counter()

    def acquire(self, principal: str) -> None:
        """Count one operation more, or raise TooMany."""
        if self._running[principal] >= self._limit:
            raise TooMany(
                f"a principal may have at most {self._limit:,} concurrent {self._operations}",
                hint="wait until one of them has ended",
            )
        self._running[principal] += 1

    def release(self, principal: str) -> None:
        """Count one operation less."""
        self._running[principal] -= 1
        if not self._running[principal]:
            del self._running[principal]

    @contextmanager
    def hold(self, principal: str) -> Iterator[None]:
        """Acquire on entry, release on exit."""
        self.acquire(principal)
        try:
            yield
        finally:
            self.release(principal)

    @property
    def total(self) -> int:
        """The number of running operations of all principals."""
        return self._running.total()
