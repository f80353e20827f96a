"""Middleware around every request: request id, authentication, body limits, error response, log line and metrics."""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tureen.errors import TureenError
from tureen.service.authorization import CALLER
from tureen.service.bodies import limit_body
from tureen.service.error_responses import error_response
from tureen.service.logs import REQUESTS
from tureen.service.recent_values import accepted_age
from tureen.service.state import Service

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class RequestMiddleware:
    """ASGI middleware of the whole application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        """Wrap an application."""
        self._app, self._service = app, service
        self._id_prefix, self._numbers = secrets.token_hex(4), itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = time.perf_counter()
        headers = Headers(scope=scope)
        client_id = headers.get("x-request-id", "")
        request_id = client_id if _REQUEST_ID.fullmatch(client_id) else f"{self._id_prefix}-{next(self._numbers):x}"
        scope["tureen.request"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["X-Request-Id"] = request_id
                sent["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            if scope["path"].startswith("/v1/"):
                # Before any of the body is read, and before the response reveals which paths exist.
                scope[CALLER] = self._service.authenticator.authenticate(HTTPConnection(scope), self._service)
                scope["tureen.principal"] = scope[CALLER].principal
                if scope["method"] == "GET" and accepted_age(headers):
                    await self._service.polls.wait()
            await self._app(scope, limit_body(receive, scope, self._service.settings), send_with_headers)
        except Exception as error:
            if not isinstance(error, HTTPException | TureenError):
                logging.getLogger("tureen").exception("request %s failed", request_id)
            if not status:
                await error_response(error, request_id)(scope, receive, send_with_headers)
        finally:
            self._log_request(scope, status, time.perf_counter() - started_at)

    def _log_request(self, scope: Scope, status: int, seconds: float) -> None:
        # The route, not the path: a path contains names and handles.
        route = getattr(scope.get("route"), "path", "-")
        method = scope["method"] if scope["method"] in _METHODS else "-"
        self._service.metrics.requests.labels(method, route, str(status)).inc()
        if self._service.settings.log_requests and REQUESTS.isEnabledFor(logging.INFO):
            fields: dict[str, Any] = {
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 3),
                "principal": scope.get("tureen.principal", "-"),
                "request": scope["tureen.request"],
            }
            REQUESTS.info("request", extra={"fields": fields})
