"""Error responses as exceptions: those that an embedded pot raises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tureen.errors import Location, ServiceError, TureenError

_SHOWN_BODY = 200
"""The number of characters of an unknown body that an error shows."""


def error_of(response: httpx.Response) -> TureenError:
    """The exception for an unsuccessful response, whose body has been read."""
    try:
        return error_from(response.json()["error"], response.status_code)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        # Not from a Tureen server: a proxy in between has a body of its own.
        return _error(
            ServiceError,
            f"status_{response.status_code}",
            f"the server answered {response.status_code} {response.reason_phrase}".rstrip(),
            detail=response.text[:_SHOWN_BODY] or None,
            hint="check that the URL is that of a Tureen server",
        )


def error_from(body: Any, status: int | None = None) -> TureenError:
    """The exception for an error body.

    >>> error_from({"code": "unknown_stream", "message": "there is no stream 'x'"})
    UnknownStream("there is no stream 'x'")
    """
    code, message = str(body["code"]), str(body["message"])
    position = body.get("position")
    detail = body.get("detail")
    if status is not None and status >= 500 and body.get("request"):
        detail = f"{detail or ''} request {body['request']} in the server's log".strip()
    return _error(
        _classes().get(code, ServiceError),
        code,
        message,
        detail=detail if detail is None or isinstance(detail, str) else json.dumps(detail),
        hint=body.get("hint"),
        location=Location(int(position["line"]), int(position["column"])) if position else None,
    )


def _error(kind: type[TureenError], code: str, message: str, **parts: Any) -> TureenError:
    error = kind(message, **parts)
    # A newer server may send codes that have no class here.
    if error.code != code:
        error.code = code
    return error


def _classes() -> dict[str, type[TureenError]]:
    """The exception classes by their codes; a subclass may have the code of its base."""
    classes: dict[str, type[TureenError]] = {}
    for kind in _subclasses(TureenError):
        classes.setdefault(kind.code, kind)
    return classes


def _subclasses(kind: type[TureenError]) -> Iterator[type[TureenError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _subclasses(subclass)
