"""Errors as HTTP responses: one JSON body for all of them, and a status for every class of error."""

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
    errors.UnknownFunction: 404,
    errors.UnknownPeer: 404,
    errors.WaitTimeout: 408,
    errors.DuplicateName: 409,
    errors.DependentStreams: 409,
    errors.FunctionInUse: 409,
    errors.KeyConflict: 409,
    errors.QueryFailed: 409,
    errors.TooLarge: 413,
    errors.TooMany: 429,
    errors.DamagedFile: 500,
    errors.PeerFailed: 502,
    errors.Unreachable: 502,
    errors.PotError: 503,
    errors.EngineFailed: 503,
    errors.TureenError: 400,
}
"""The status of each class of errors and of its subclasses."""

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

_MESSAGES = {
    400: "the request cannot be parsed",
    404: "no such path",
    405: "method not allowed for this path",
}
"""Replacements for the messages of the framework's own errors."""

RETRY_AFTER = "1"
"""The Retry-After header of errors that may be temporary, in seconds."""


class HttpError(HTTPException):
    """An error of the HTTP request itself, such as its media type, size or syntax."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Respond with a status, a message, and optionally a hint, a detail and headers."""
        super().__init__(status, message, headers)
        # The framework's `detail` is the message.
        self.hint, self.message_detail = hint, detail


def status_of(error: TureenError) -> int:
    """The status of an error.

    >>> status_of(errors.UnknownColumn("no such column")), status_of(errors.StorageFailed("disk full"))
    (400, 503)
    """
    return next(STATUSES[error_class] for error_class in type(error).__mro__ if error_class in STATUSES)


def error_body(error: TureenError, request_id: str) -> dict[str, Any]:
    """The JSON body of an error, without the fields that are unknown."""
    position = None if error.location is None else {"line": error.location.line, "column": error.location.column}
    return _body(error.code, error.message, request_id, detail=error.detail, hint=error.hint, position=position)


def error_response(error: Exception, request_id: str) -> Response:
    """The response to a request that failed; an unexpected error does not reveal its text."""
    headers: dict[str, str] = {}
    if isinstance(error, TureenError):
        status, body = status_of(error), error_body(error, request_id)
    elif isinstance(error, RequestValidationError):
        status = 422
        body = _body("invalid_request", "the request is not valid", request_id, detail=_validation_detail(error))
    elif isinstance(error, HTTPException):
        status = error.status_code
        headers = dict(error.headers or {})
        code = _CODES.get(status, "bad_request")
        if isinstance(error, HttpError):
            body = _body(code, str(error.detail), request_id, detail=error.message_detail, hint=error.hint)
        else:
            body = _body(code, _MESSAGES.get(status, str(error.detail)), request_id)
    else:
        status, body = 500, _body("internal", "internal server error", request_id)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="tureen"'
    if status in (429, 503):
        headers["Retry-After"] = RETRY_AFTER
    return Response(encode_json(body), status, headers, "application/json")


def encode_json(value: object) -> bytes:
    """Encode as JSON, with question marks for text that is not valid Unicode."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return orjson.dumps(_encodable(value), default=str)


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return value


def _body(code: str, message: str, request_id: str, **optional: Any) -> dict[str, Any]:
    known = {key: value for key, value in optional.items() if value is not None}
    return {"error": {"code": code, "message": message, **known, "request": request_id}}


def _validation_detail(error: RequestValidationError) -> str:
    """The first validation failures, without the values that were sent."""
    failures = error.errors()[:5]
    return "; ".join(f"{'.'.join(str(part) for part in failure['loc'])}: {failure['msg']}" for failure in failures)
