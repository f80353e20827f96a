"""Requests to one server: sent, sent again where that is safe, and answered or raised."""

from __future__ import annotations

import os
import random
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tureen.client.remote_errors import error_of
from tureen.client.retry import Failure, Retries, failure_of
from tureen.errors import TureenError, Unreachable

ARROW = "application/vnd.apache.arrow.stream"

Params = Mapping[str, Any]

Authority = str | os.PathLike[str] | ssl.SSLContext
"""Whose certificates are trusted: a file of them in PEM, or a context that has them."""


@dataclass(frozen=True)
class Request:
    """One call of the API."""

    method: str
    path: str
    params: Params = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: float = 0.0
    """For how many seconds the server may take its time, beyond what a request usually takes."""

    repeatable: bool | None = None
    """Whether sending it twice does what sending it once does; None leaves it to the method."""

    def can_repeat(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method != "POST" if self.repeatable is None else self.repeatable


class TurnedAway(Exception):
    """A request came to nothing, but may be worth another attempt."""

    def __init__(self, failure: Failure, error: TureenError, asked: float | None = None) -> None:
        """Keep how far it got, what to raise if it is not tried again, and for how long the server wants rest."""
        super().__init__(str(error))
        self.failure, self.error, self.asked = failure, error, asked


class Transport:
    """The connections to one server."""

    def __init__(
        self, url: str, token: str | None, *, timeout: float, patience: float, ca: Authority | None = None
    ) -> None:
        """Speak to the server at that address; nothing is sent yet."""
        trusted = True if ca is None else _trusted(ca)
        headers = {"User-Agent": "tureen-python"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self.url = httpx.URL(url.rstrip("/"))
            # Followers hold a connection each, so there is no limit to their number.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._http = httpx.Client(
                base_url=self.url, headers=headers, timeout=timeout, limits=limits, verify=trusted
            )
        except (httpx.InvalidURL, TypeError, UnicodeEncodeError) as error:
            raise TureenError(f"'{url}' is no address of a server", detail=str(error), hint=_HINT) from None
        if self.url.scheme not in ("http", "https") or not self.url.host:
            raise TureenError(f"'{url}' is no address of a server", hint=_HINT)
        self._timeout, self._patience = timeout, patience
        self._known = False
        self._closed = threading.Event()

    def send(self, request: Request) -> httpx.Response:
        """The answer to a request; what is no success is raised as the error that it tells of."""
        retries = Retries(request.can_repeat(), self._known, self._patience)
        began = time.monotonic()
        while True:
            try:
                return self._attempt(request, retries)
            except TurnedAway as away:
                retries.known = self._known
                pause = retries.pause_after(away.failure, time.monotonic() - began, away.asked, random.random())
                if pause is None or self._closed.wait(pause):
                    raise away.error from away.__cause__

    def _attempt(self, request: Request, retries: Retries) -> httpx.Response:
        """The answer to keep; or `TurnedAway`, where it may be worth another attempt."""
        self._check_open()
        with self._telling():
            response = self._http.request(
                request.method,
                request.path,
                params=request.params or None,
                json=request.json,
                content=request.content,
                headers=request.headers,
                timeout=self._timeout + request.waits,
            )
        self._known = True
        # What an attempt whose answer was lost has removed is gone.
        if response.is_success or (request.method == "DELETE" and response.status_code == 404 and retries.unsure):
            return response
        raise _told(response)

    @contextmanager
    def stream(self, request: Request, *, silence: float) -> Iterator[httpx.Response]:
        """The answer to a request as it comes; `silence` is for how many seconds nothing may come.

        It is tried once, as whoever follows a stream knows where to go on; `TurnedAway` says that it may come again.
        """
        self._check_open()
        timeout = httpx.Timeout(self._timeout, read=silence)
        with (
            self._telling(),
            self._http.stream(
                request.method, request.path, params=request.params, headers=request.headers, timeout=timeout
            ) as response,
        ):
            self._known = True
            if not response.is_success:
                response.read()
                raise _told(response)
            yield response

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """A connection that fails is told of as what it means for the request."""
        try:
            yield
        except httpx.TransportError as error:
            self._check_open()
            missing = Unreachable(
                f"no answer from {self.url}",
                detail=str(error) or type(error).__name__,
                hint=_UNTRUSTED if "CERTIFICATE_VERIFY_FAILED" in str(error) else _NOBODY,
            )
            raise TurnedAway(_failure(error), missing) from error

    @property
    def patience(self) -> float:
        """For how many seconds a request is tried again."""
        return self._patience

    @property
    def known(self) -> bool:
        """Whether this server ever answered."""
        return self._known

    def rest(self, seconds: float) -> None:
        """Wait before an attempt; raise if the client is closed meanwhile."""
        self._closed.wait(seconds)
        self._check_open()

    def close(self) -> None:
        """Let go of the connections."""
        self._closed.set()
        self._http.close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise TureenError("this client was closed", hint="connect again")


_NOBODY = "is the server running? `tureen serve` starts one"
_UNTRUSTED = "give the certificate that signs the server's by ca=, --ca or TUREEN_CA"
_HINT = "as in http://127.0.0.1:7707"


def _told(response: httpx.Response) -> TureenError | TurnedAway:
    """What an answer that is no success says, to be raised."""
    error, failure = error_of(response), failure_of(response.status_code)
    return error if failure is None else TurnedAway(failure, error, _retry_after(response))


def _failure(error: httpx.TransportError) -> Failure:
    """How far a request got that raised."""
    if isinstance(error, httpx.ConnectError):
        return Failure.REFUSED
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout | httpx.UnsupportedProtocol):
        return Failure.UNSENT
    return Failure.LOST


def _retry_after(response: httpx.Response) -> float | None:
    """How many seconds the server wants to be left alone; a date is not understood, and means None."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def _trusted(ca: Authority) -> ssl.SSLContext:
    """What trusts the certificates of a file, and no others."""
    if isinstance(ca, ssl.SSLContext):
        return ca
    if not isinstance(ca, str | os.PathLike):
        raise TureenError(f"ca must be a path or an ssl.SSLContext, got {type(ca).__name__}")
    try:
        return ssl.create_default_context(cafile=os.fspath(ca))
    except (OSError, ValueError) as error:
        raise TureenError(
            f"the certificates in '{ca}' cannot be read", detail=str(error), hint="give a file in PEM"
        ) from None
