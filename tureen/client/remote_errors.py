"""What a server said went wrong, as the exception that an embedded pot would have raised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tureen.errors import Location, ServiceError, TureenError

_LONGEST_BODY = 200


def error_of(response: httpx.Response) -> TureenError:
    """The exception for an answer that is no success; its body has been read."""
    try:
        told = response.json()["error"]
        return error_from(told, response.status_code)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        # A proxy in between speaks its own language.
        return _told(
            ServiceError,
            f"status_{response.status_code}",
            f"the server answered {response.status_code} {response.reason_phrase}".rstrip(),
            detail=response.text[:_LONGEST_BODY] or None,
            hint="look whether the address is that of a Tureen server",
        )


def error_from(told: Any, status: int | None = None) -> TureenError:
    """The exception for the body of an error.

    >>> error_from({"code": "unknown_stream", "message": "there is no stream 'x'"})
    UnknownStream("there is no stream 'x'")
    """
    code, message = str(told["code"]), str(told["message"])
    location = told.get("position")
    detail = told.get("detail")
    if status is not None and status >= 500 and told.get("request"):
        detail = f"{detail or ''} request {told['request']} in the server's log".strip()
    return _told(
        _kinds().get(code, ServiceError),
        code,
        message,
        detail=detail if detail is None or isinstance(detail, str) else json.dumps(detail),
        hint=told.get("hint"),
        location=Location(int(location["line"]), int(location["column"])) if location else None,
    )


def _told(kind: type[TureenError], code: str, message: str, **parts: Any) -> TureenError:
    error = kind(message, **parts)
    # Codes that have no class of their own keep theirs on the exception.
    if error.code != code:
        error.code = code
    return error


def _kinds() -> dict[str, type[TureenError]]:
    """All exceptions by their codes."""
    return {kind.code: kind for kind in _below(TureenError)}


def _below(kind: type[TureenError]) -> Iterator[type[TureenError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _below(one)
