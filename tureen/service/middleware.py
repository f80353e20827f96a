"""What is around every request: its id, its limits, its log line, its count, and an answer whatever happens."""

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
from tureen.service.bodies import bounded
from tureen.service.error_responses import problem
from tureen.service.logs import REQUESTS
from tureen.service.state import Service

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Frame:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        """Stand around that application."""
        self._app, self._service = app, service
        self._start, self._numbers = secrets.token_hex(4), itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else f"{self._start}-{next(self._numbers):x}"
        scope["tureen.request"] = request_id
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                found = MutableHeaders(scope=message)
                found["X-Request-Id"] = request_id
                found["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            if scope["path"].startswith("/v1/"):
                # Before anything of the body is read, and before it is said what there is.
                scope[CALLER] = self._service.gate.admit(HTTPConnection(scope), self._service)
                scope["tureen.principal"] = scope[CALLER].principal
            await self._app(scope, bounded(receive, scope, self._service.settings), answer)
        except Exception as error:
            if not isinstance(error, HTTPException | TureenError):
                logging.getLogger("tureen").exception("request %s failed", request_id)
            if not status:
                await problem(error, request_id)(scope, receive, answer)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # The route and not the path: a path has names and handles in it.
        route = getattr(scope.get("route"), "path", "-")
        method = scope["method"] if scope["method"] in _METHODS else "-"
        self._service.metrics.requests.labels(method, route, str(status)).inc()
        if self._service.settings.log_requests and REQUESTS.isEnabledFor(logging.INFO):
            facts: dict[str, Any] = {
                "method": method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 3),
                "principal": scope.get("tureen.principal", "-"),
                "request": scope["tureen.request"],
            }
            REQUESTS.info("request", extra={"facts": facts})


_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
