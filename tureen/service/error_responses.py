"""What went wrong, as HTTP says it: one shape of body, and a status for every kind of error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tureen import errors
from tureen.errors import TureenError

STATUSES: dict[type[TureenError], int] = {
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.UnknownStream: 404,
    errors.UnknownTable: 404,
    errors.UnknownQuery: 404,
    errors.UnknownToken: 404,
    errors.WaitTimeout: 408,
    errors.DuplicateName: 409,
    errors.KeyConflict: 409,
    errors.QueryFailed: 409,
    errors.TooLarge: 413,
    errors.TooMany: 429,
    errors.DamagedFile: 500,
    errors.PotError: 503,
    errors.EngineFailed: 503,
    errors.TureenError: 400,
}
"""The status of each class of errors and of those below it."""

_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid_request",
    431: "headers_too_large",
    503: "not_ready",
}

RETRY_AFTER = "1"
"""After how many seconds to try again what may be better then."""


class Refusal(HTTPException):
    """A request that is refused before it means anything: its type, its size, its shape."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Refuse with that status."""
        super().__init__(status, message, headers)
        self.hint, self.more = hint, detail


def status_of(error: TureenError) -> int:
    """The status that fits an error.

    >>> status_of(errors.UnknownColumn("no such column")), status_of(errors.StorageFailed("disk full"))
    (400, 503)
    """
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def body_of(error: TureenError, request_id: str) -> dict[str, Any]:
    """The body of an error; what is not known is left out."""
    place = None if error.location is None else {"line": error.location.line, "column": error.location.column}
    return _body(error.code, error.message, request_id, detail=error.detail, hint=error.hint, position=place)


def problem(error: Exception, request_id: str) -> Response:
    """The answer to a request that came to nothing; what nobody expected says nothing of itself."""
    headers: dict[str, str] = {}
    if isinstance(error, TureenError):
        status, body = status_of(error), body_of(error, request_id)
    elif isinstance(error, RequestValidationError):
        status = 422
        body = _body("invalid_request", "the request does not have the right shape", request_id, detail=_wrong(error))
    elif isinstance(error, HTTPException):
        status = error.status_code
        headers = dict(error.headers or {})
        more = error if isinstance(error, Refusal) else None
        body = _body(
            _CODES.get(status, "bad_request"),
            _SAID.get(status, str(error.detail)) if more is None else str(error.detail),
            request_id,
            detail=more and more.more,
            hint=more and more.hint,
        )
    else:
        status, body = 500, _body("internal", "something went wrong in the server", request_id)
    return said(status, body, headers)


def said(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """An error's body as an answer, with the headers that go with its status."""
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = 'Bearer realm="tureen"'
    if status in (429, 503):
        more["Retry-After"] = RETRY_AFTER
    return Response(encode(body), status, more, "application/json")


def encode(value: object) -> bytes:
    """JSON, whatever odd text a client sent: what is no Unicode is shown as a question mark."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return orjson.dumps(_cleaned(value), default=str)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return value


_SAID = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
    400: "the request cannot be read",
}


def _body(code: str, message: str, request_id: str, **more: Any) -> dict[str, Any]:
    known = {key: value for key, value in more.items() if value is not None}
    return {"error": {"code": code, "message": message, **known, "request": request_id}}


def _wrong(error: RequestValidationError) -> str:
    """What does not fit, without repeating what was sent."""
    return "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:5])
