"""Who asks, and what they may: tokens looked up in memory, read again when the catalog changed."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.requests import HTTPConnection

from tureen.errors import Forbidden, TooMany, Unauthorized
from tureen.handle import is_query_handle
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.queries import LOCAL
from tureen.pot.tokens import Token, list_tokens, note_use, split_token
from tureen.service.settings import is_loopback

if TYPE_CHECKING:
    from tureen.service.state import Service
    from tureen.soup.embedded import Soup

log = logging.getLogger("tureen")


CALLER = "tureen.caller"
"""Where a request keeps who sent it."""

NOTE_EVERY = 60.0
"""How often it is noted in the catalog when tokens were last used, in seconds."""


@dataclass(frozen=True)
class Caller:
    """Whoever asks: a principal, and what the token allows."""

    service: Service
    principal: str
    scopes: frozenset[str]

    @property
    def soup(self) -> Soup:
        """The pot as this principal sees it."""
        return self.service.acting_for(self.principal)

    def handle(self, handle_or_name: str) -> str:
        """The handle that a handle or one of the principal's names means; a handle needs no look-up."""
        return handle_or_name if is_query_handle(handle_or_name) else self.soup.query(handle_or_name).id

    def soup_of(self, handle_or_name: str) -> Soup:
        """The pot in which a query or a template is looked for: by a handle, an admin finds everybody's."""
        return self.service.soup if self.may("admin") and is_query_handle(handle_or_name) else self.soup

    def note(self, did: str, what: str, owner: str) -> None:
        """Log what an admin did with what is another's."""
        if owner != self.principal and self.may("admin"):
            log.info("admin '%s' %s %s of '%s'", self.principal, did, what, owner)

    def may(self, scope: str) -> bool:
        """Whether the token has that scope; an admin's has all."""
        return scope in self.scopes or "admin" in self.scopes

    def check(self, *scopes: str) -> None:
        """Refuse where the token has none of these scopes."""
        if not any(self.may(scope) for scope in scopes):
            raise Forbidden(
                f"this needs a token with the scope '{' or '.join(scopes)}'",
                detail=f"this one has {', '.join(sorted(self.scopes))}",
            )


class Gate:
    """Knows the tokens of a pot."""

    def __init__(self, catalog: Catalog, *, open_to_all: bool) -> None:
        """Ask that catalog; where it is open to all, everybody is an admin."""
        self._catalog, self._open = catalog, open_to_all
        self._version = -1
        self._tokens: dict[str, Token] = {}
        self._verified: dict[str, Token] = {}
        self._used: dict[str, int] = {}
        self._noted = time.monotonic()

    def admit(self, connection: HTTPConnection, service: Service) -> Caller:
        """Whoever sent a request, or Unauthorized."""
        if self._open:
            _check_local(connection)
            return Caller(service, LOCAL, frozenset({"admin"}))
        kind, _, text = connection.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text:
            raise Unauthorized("this needs a token", hint="send the header 'Authorization: Bearer …'")
        token = self._known(text.strip())
        return Caller(service, token.principal, token.scopes)

    def _known(self, text: str) -> Token:
        version = self._catalog.token()
        if version != self._version:
            # Some commit: a token may have been made or revoked by it, here or by another process.
            with self._catalog.read() as tx:
                self._tokens = {token.id: token for token in list_tokens(tx)}
            self._verified, self._version = {}, version
        now = micros_now()
        token = self._verified.get(text)
        if token is None or (token.expires_at is not None and now >= token.expires_at):
            parts = split_token(text)
            token = None if parts is None else self._tokens.get(parts[0])
            if token is None or parts is None or not token.opens(parts[1], now):
                raise Unauthorized("the token is not known", hint="it may have expired or been revoked")
            self._verified[text] = token
        self._used[token.id] = now
        return token

    def note_use(self, *, at_once: bool = False) -> None:
        """Keep in the catalog when tokens were last used; seldom, as each time is a commit."""
        if self._used and (at_once or time.monotonic() - self._noted >= NOTE_EVERY):
            used, self._used, self._noted = self._used, {}, time.monotonic()
            with self._catalog.write() as tx:
                note_use(tx, used)


def _check_local(connection: HTTPConnection) -> None:
    """Refuse what a page in a browser sends under another name: without tokens, the address is all there is."""
    host = connection.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not is_loopback(name):
        raise Forbidden("without tokens this server answers to its loopback address only", hint="use 127.0.0.1")


class Needs(SecurityBase):
    """What a route asks of its caller: one of some scopes."""

    def __init__(self, *scopes: str) -> None:
        """Ask for one of these."""
        self.scopes = scopes
        self.model = HTTPBearer(description="A token of `tureen token create`.")
        self.scheme_name = "token"

    async def __call__(self, request: HTTPConnection) -> Caller:
        """The caller of a request, if it may."""
        caller: Caller | None = request.scope.get(CALLER)
        if caller is None:
            service: Service = request.app.state.service
            caller = service.gate.admit(request, service)
        caller.check(*self.scopes)
        return caller


class Slots:
    """How many of something each principal has at a time."""

    def __init__(self, what: str, most: int) -> None:
        """Allow so many."""
        self._what, self._most = what, most
        self._taken: Counter[str] = Counter()

    def take(self, principal: str) -> None:
        """Take one, or raise TooMany."""
        if self._taken[principal] >= self._most:
            raise TooMany(f"more than {self._most:,} {self._what} at a time", hint="wait for some to end")
        self._taken[principal] += 1

    def give_back(self, principal: str) -> None:
        """Let one go."""
        self._taken[principal] -= 1
        if not self._taken[principal]:
            del self._taken[principal]

    @contextmanager
    def one(self, principal: str) -> Iterator[None]:
        """Take one for a while."""
        self.take(principal)
        try:
            yield
        finally:
            self.give_back(principal)

    @property
    def total(self) -> int:
        """How many there are of all principals."""
        return self._taken.total()
