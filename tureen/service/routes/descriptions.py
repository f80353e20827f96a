"""OpenAPI descriptions of bodies, answers, event streams and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from tureen.service import body_shapes as shapes
from tureen.service.bodies import ARROW, CSV, JSON, LINES, XML

_ERRORS = {
    400: "Invalid SQL, rows or names.",
    401: "No valid token.",
    403: "The token lacks the required scope.",
    404: "No such object for this principal.",
    406: "No supported media type in the Accept header.",
    408: "Timeout.",
    409: "Conflict with an existing object, or the query has failed.",
    413: "Too many bytes or rows.",
    415: "Unsupported media type or encoding of the body.",
    422: "Invalid parameters or JSON body.",
    429: "A limit of the principal is reached.",
    431: "The address and the headers are too long.",
    502: "Another server that the request needs did not answer, or not as it must.",
    503: "Temporarily unavailable.",
}
_EVERY_ROUTE = (400, 401, 403, 413, 415, 422, 503)

_TEXT = {"schema": {"type": "string"}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "the position after the event"},
        "event": {"type": "string", "enum": ["position", "change", "error"]},
        "data": {"type": "string", "description": "JSON"},
    },
}
EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": _EVENT}}}
}


def describe_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route: the given statuses, and those of every route."""
    return {
        status: {"model": shapes.ErrorBody, "description": _ERRORS[status]}
        for status in sorted({*statuses, *_EVERY_ROUTE})
    }


def without_content(*statuses: int) -> dict[str, Any]:
    """The arguments of a route that changes something and responds without content; it may fail with these statuses."""
    return {"status_code": 204, "response_class": Response, "responses": describe_errors(*statuses)}


def describe_row_body(*, json: Mapping[str, Any] | None = None, xml: bool = False) -> dict[str, Any]:
    """A request body with rows, perhaps in XML; `json` replaces the schema of the JSON form."""
    json_schema = json or {"type": "array", "items": {"type": "object"}}
    texts = dict.fromkeys((LINES[0], LINES[1], CSV, *([XML] if xml else [])), _TEXT)
    return {"requestBody": {"required": True, "content": {JSON: {"schema": json_schema}, **texts, ARROW: _BINARY}}}


def describe_answer(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """A response with rows as JSON, CSV, Arrow or XML."""
    return {200: {"model": model, "description": "The answer.", "content": {CSV: _TEXT, ARROW: _BINARY, XML: _TEXT}}}
