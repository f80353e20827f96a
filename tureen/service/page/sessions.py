"""Sessions of the page: a cookie instead of a token, so that scripts of a page never hold one."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from tureen.errors import Forbidden

COOKIE = "tureen_session"
"""The name of the cookie."""

PAGE_HEADER = "x-tureen-page"
"""The header of requests that change something: pages of other origins cannot send it."""

MOST_SESSIONS = 10_000
"""The most sessions at a time; beyond, the oldest ends."""

MOST_SESSIONS_OF_A_TOKEN = 100
"""The most sessions of one token at a time; beyond, its oldest ends."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class PageSession:
    """Somebody who is signed in."""

    token: str
    ends_at: float
    """On the clock of `PageSessions`."""


class PageSessions:
    """The sessions of a server, in memory: they end with it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Let each session last for some seconds."""
        self.seconds, self._clock = seconds, clock
        self._sessions: dict[bytes, PageSession] = {}

    def __len__(self) -> int:
        """The number of sessions, including expired ones that were not used since."""
        return len(self._sessions)

    def begin(self, token: str) -> str:
        """Begin a session of a valid token; the secret of its cookie."""
        now = self._clock()
        self._sessions = {key: session for key, session in self._sessions.items() if session.ends_at > now}
        # Of the same token first, so that nobody can end the sessions of others.
        own = [key for key, session in self._sessions.items() if session.token == token]
        for key in own[: max(0, len(own) + 1 - MOST_SESSIONS_OF_A_TOKEN)]:
            del self._sessions[key]
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = PageSession(token, now + self.seconds)
        return secret

    def token_of(self, connection: HTTPConnection) -> str | None:
        """The token of a request's session, or None if it has none.

        Raises Forbidden for a request that changes something and may have been sent by a page of another origin.
        """
        secret = session_cookie(connection)
        if secret is None:
            return None
        session = self._sessions.get(_digest(secret))
        if session is None or session.ends_at <= self._clock():
            return None
        if connection.scope.get("method", "GET") not in _SAFE_METHODS and PAGE_HEADER not in connection.headers:
            raise Forbidden(f"a request with a session must have the header '{PAGE_HEADER}'")
        return session.token

    def end(self, connection: HTTPConnection) -> None:
        """End the session of a request, if it has one."""
        secret = session_cookie(connection)
        if secret is not None:
            self._sessions.pop(_digest(secret), None)

    def seconds_left(self, connection: HTTPConnection) -> float | None:
        """How long the session of a request will last, or None if it has none."""
        secret = session_cookie(connection)
        session = None if secret is None else self._sessions.get(_digest(secret))
        return None if session is None else max(0.0, session.ends_at - self._clock())


def session_cookie(connection: HTTPConnection) -> str | None:
    """The secret of a request's session cookie."""
    return connection.cookies.get(COOKIE)


def _digest(secret: str) -> bytes:
    # Looked up by digest: the time of a look-up reveals nothing about the secrets of others.
    return hashlib.sha256(secret.encode(errors="replace")).digest()
