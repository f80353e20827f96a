"""HTTP requests to one server, with retries where they are safe."""

from __future__ import annotations

import os
import random
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tureen.arguments import check_text
from tureen.client.remote_errors import error_of
from tureen.client.retry import PATIENCE, Failure, Retries, failure_of
from tureen.errors import TureenError, Unreachable

TIMEOUT = 60.0
"""The default number of seconds without a byte from the server before a request fails."""

ARROW = "application/vnd.apache.arrow.stream"

Params = Mapping[str, Any]

Authority = str | os.PathLike[str] | ssl.SSLContext
"""The certificates to trust: a PEM file, or an SSL context."""


@dataclass(frozen=True)
class Request:
    """One call of the API."""

    method: str
    path: str
    params: Params = field(default_factory=dict)
    json: Any = None
    content: bytes | Iterable[bytes] | None = None
    """The body; an iterable is sent as it produces bytes, and cannot be sent again."""
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: float = 0.0
    """The number of seconds that the server may wait before it answers, in addition to the timeout."""

    repeatable: bool | None = None
    """Whether the request is idempotent; None decides by the method."""

    def can_repeat(self) -> bool:
        """Whether the request may be sent again when its outcome is unknown."""
        return self.method != "POST" if self.repeatable is None else self.repeatable


class AttemptFailed(Exception):
    """An attempt of a request failed, and may be retried."""

    def __init__(self, failure: Failure, error: TureenError, retry_after: float | None = None) -> None:
        """Keep the failure, the error to raise if there is no retry, and the pause that the server asked for."""
        super().__init__(str(error))
        self.failure, self.error, self.retry_after = failure, error, retry_after


class Transport:
    """The connections to one server."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
        ca: Authority | None = None,
    ) -> None:
        """Prepare connections to the server at a URL; nothing is sent yet."""
        check_text(url, "the address of a server")
        if token is not None:
            check_text(token, "a token")
        context = None if ca is None else _ssl_context(ca)
        headers = {"User-Agent": "tureen-python"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self.url = httpx.URL(url.rstrip("/"))
            # Every open feed holds a connection, so their number has no limit.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            verify = context or _system_context(self.url)
            self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, limits=limits, verify=verify)
        except (httpx.InvalidURL, TypeError, UnicodeEncodeError) as error:
            raise TureenError(f"'{url}' is not a server URL", detail=str(error), hint=_URL_HINT) from None
        if self.url.scheme not in ("http", "https") or not self.url.host:
            raise TureenError(f"'{url}' is not a server URL", hint=_URL_HINT)
        self._timeout, self._patience = timeout, patience
        self._known = False
        self._closed = threading.Event()

    def send(self, request: Request) -> httpx.Response:
        """Send a request and return its successful response; raise the error of any other response."""
        retries = Retries(request.can_repeat(), self._known, self._patience)
        began = time.monotonic()
        while True:
            try:
                return self._attempt(request, retries)
            except AttemptFailed as failed:
                retries.known = self._known
                elapsed = time.monotonic() - began
                pause = retries.pause_after(failed.failure, elapsed, failed.retry_after, random.random())
                is_sent = not isinstance(request.content, bytes | None)
                if is_sent or pause is None or self._closed.wait(pause):
                    raise failed.error from failed.__cause__

    def get_json(self, path: str) -> Any:
        """The JSON body of a GET request."""
        return self.send(Request("GET", path)).json()

    def post_json(self, path: str, body: Any) -> Any:
        """The JSON body of the response to a POST request with a JSON body."""
        return self.send(Request("POST", path, json=body)).json()

    def delete(self, path: str) -> None:
        """Send a DELETE request."""
        self.send(Request("DELETE", path))

    def _attempt(self, request: Request, retries: Retries) -> httpx.Response:
        """Send a request once; raise `AttemptFailed` if it may be retried."""
        self._check_open()
        with self._transport_errors():
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
        # A retried DELETE finds nothing if an earlier attempt, whose response was lost, succeeded.
        if response.is_success or (request.method == "DELETE" and response.status_code == 404 and retries.unsure):
            return response
        raise _error(response)

    @contextmanager
    def stream(self, request: Request, *, silence: float) -> Iterator[httpx.Response]:
        """Send a request and yield its response for streaming; `silence` is the longest wait for the next byte.

        There is no retry, as only the caller knows where to resume; `AttemptFailed` says that it may retry.
        """
        self._check_open()
        timeout = httpx.Timeout(self._timeout, read=silence)
        with (
            self._transport_errors(),
            self._http.stream(
                request.method,
                request.path,
                params=request.params or None,
                json=request.json,
                headers=request.headers,
                timeout=timeout,
            ) as response,
        ):
            self._known = True
            if not response.is_success:
                response.read()
                raise _error(response)
            yield response

    @contextmanager
    def _transport_errors(self) -> Iterator[None]:
        """Convert errors of the connection to `AttemptFailed`."""
        try:
            yield
        except httpx.TransportError as error:
            self._check_open()
            unreachable = Unreachable(
                f"no answer from {self.url}",
                detail=str(error) or type(error).__name__,
                hint=_CERTIFICATE_HINT if "CERTIFICATE_VERIFY_FAILED" in str(error) else _SERVER_HINT,
            )
            raise AttemptFailed(_failure(error), unreachable) from error

    @property
    def patience(self) -> float:
        """The number of seconds for which a request is retried."""
        return self._patience

    @property
    def known(self) -> bool:
        """Whether this server has answered before."""
        return self._known

    def pause(self, seconds: float) -> None:
        """Wait before a retry; raise if the client is closed meanwhile."""
        self._closed.wait(seconds)
        self._check_open()

    def close(self) -> None:
        """Close the connections."""
        self._closed.set()
        self._http.close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise TureenError("the client is closed", hint="connect again")


_SERVER_HINT = "is the server running? `tureen serve` starts one"
_CERTIFICATE_HINT = "pass the certificate that signed the server's by ca=, --ca or TUREEN_CA"
_URL_HINT = "as in http://127.0.0.1:7707"


def _error(response: httpx.Response) -> TureenError | AttemptFailed:
    """The exception to raise for an unsuccessful response."""
    error, failure = error_of(response), failure_of(response.status_code)
    return error if failure is None else AttemptFailed(failure, error, _retry_after(response))


def _failure(error: httpx.TransportError) -> Failure:
    """How far the request got that raised this error."""
    if isinstance(error, httpx.ConnectError):
        return Failure.REFUSED
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout | httpx.UnsupportedProtocol):
        return Failure.UNSENT
    return Failure.LOST


def _retry_after(response: httpx.Response) -> float | None:
    """The seconds in a `Retry-After` header; None without one, or if it is a date."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def _system_context(url: httpx.URL) -> ssl.SSLContext | bool:
    """A context that trusts the certificates of the system; without TLS one that trusts none.

    Reading the certificates takes longer than all else that a client does before its first request.
    """
    return True if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _ssl_context(ca: Authority) -> ssl.SSLContext:
    """A context that trusts the certificates of a file, and no others."""
    if isinstance(ca, ssl.SSLContext):
        return ca
    if not isinstance(ca, str | os.PathLike):
        raise TureenError(f"ca must be a path or an ssl.SSLContext, got {type(ca).__name__}")
    try:
        return ssl.create_default_context(cafile=os.fspath(ca))
    except (OSError, ValueError) as error:
        raise TureenError(
            f"the certificates in '{ca}' cannot be read", detail=str(error), hint="ca must be a PEM file"
        ) from None
