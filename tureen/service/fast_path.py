"""The fast path of invocations: `GET /v1/queries/{handle}/result`, alone or with `?limit=`, bypasses the router.

FastAPI's search for the route and its parsing of parameters take longer than a small answer. Polling clients and pages
send exactly these requests, so they are matched by regular expressions and passed to the route's own handler: the
application answers a small result in 0.2 ms instead of 0.4 ms. The router answers every other request, and these too
without the fast path (`tureen/fast_paths.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tureen.errors import TureenError
from tureen.service.authorization import RequireScope
from tureen.service.error_responses import error_response
from tureen.service.routes import queries

_RESULT_PATH = re.compile(queries.RESULT.replace("{handle}", "([0-9a-f.]{32,51})"))
_LIMIT = re.compile(rb"limit=(\d{1,18})")
_require_read = RequireScope("read")


class PlainInvocation(NamedTuple):
    """What a request on the fast path asks for."""

    handle: str
    limit: int | None = None


class InvocationFastPath:
    """ASGI middleware that answers plain invocations and passes on everything else."""

    def __init__(self, app: FastAPI) -> None:
        """Wrap the application that has the router."""
        self._app = app
        self._route = next(route for route in queries.router.routes if getattr(route, "path", "") == queries.RESULT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        asked = plain_invocation(scope)
        if asked is None:
            await self._app(scope, receive, send)
            return
        # As the router would set them: the log and the metrics name the route.
        scope["app"], scope["route"] = self._app, self._route
        request = Request(scope, receive)
        try:
            response = await queries.invoke_query(
                await _require_read(request), asked.handle, request, limit=asked.limit
            )
        except (TureenError, HTTPException) as error:
            response = error_response(error, scope["tureen.request"])
        await response(scope, receive, send)


def plain_invocation(scope: Scope) -> PlainInvocation | None:
    """What a request invokes, or None if it is anything but a plain invocation."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return None
    match = _RESULT_PATH.fullmatch(scope["path"])
    if match is None or not scope["query_string"]:
        return None if match is None else PlainInvocation(match.group(1))
    limit = _LIMIT.fullmatch(scope["query_string"])
    return None if limit is None else PlainInvocation(match.group(1), int(limit.group(1)))
