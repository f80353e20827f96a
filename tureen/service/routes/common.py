"""What routes have in common: who calls, how lists are paged, how answers and errors are described and sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ValidationError, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tureen.errors import InvalidRows
from tureen.pot.members import Members
from tureen.pot.queries import Registered
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller, Needs
from tureen.service.bodies import ARROW, CSV, JSON, LINES
from tureen.service.error_responses import encode
from tureen.service.rendering import Rendered, Wanted, takes_gzip, wanted_kind
from tureen.soup.embedded import Soup
from tureen.window import from_micros

Reader = Annotated[Caller, Depends(Needs("read"))]
Writer = Annotated[Caller, Depends(Needs("write"))]
Admin = Annotated[Caller, Depends(Needs("admin"))]
Anyone = Annotated[Caller, Depends(Needs("read", "write"))]

LARGEST_PAGE = 1_000

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="at most so many")]
After = Annotated[str | None, Query(max_length=1_000, description="`next` of the page before")]
Owner = Annotated[
    str | None, Query(max_length=255, description="whose, for an admin: a principal, or * for all principals")
]
Seconds = Annotated[float | None, Query(ge=0, le=86_400, allow_inf_nan=False, description="seconds to wait at most")]
Since = Annotated[str | None, Query(max_length=1 << 20, description="the position to go on from")]


def _moment(text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text).upper())
    except ValueError:
        raise ValueError("a time is written as in 2026-01-01T12:00:00Z") from None


Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time"}),
    Query(description="a time"),
]

_ERRORS = {
    400: "The text, the rows or the names are not right.",
    401: "No token, or one that is not known.",
    403: "The token lacks the scope.",
    404: "There is no such thing for this principal.",
    406: "The answer cannot be had in that form.",
    408: "What was waited for did not come in time.",
    409: "It is there already, or it was stopped.",
    413: "Too many bytes or rows.",
    415: "The body's type is not understood.",
    422: "The parameters or the body do not have the right shape.",
    429: "Too many at a time.",
    503: "Not at the moment.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with, besides those that every route may."""
    wanted = sorted({*statuses, 400, 401, 403, 413, 415, 422, 503})
    return {status: {"model": shapes.Problem, "description": _ERRORS[status]} for status in wanted}


def rows_body(*, json: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The description of a body with rows."""
    listed = json or {"type": "array", "items": {"type": "object"}}
    text = {"schema": {"type": "string"}}
    kinds = dict.fromkeys((LINES[0], LINES[1], CSV), text)
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": listed}, **kinds, ARROW: binary}}}


def answers(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that comes as JSON, CSV or Arrow."""
    text, binary = {"schema": {"type": "string"}}, {"schema": {"type": "string", "format": "binary"}}
    return {200: {"model": model, "description": "The answer.", "content": {CSV: text, ARROW: binary}}}


_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "description": "the position after it"},
        "event": {"type": "string", "enum": ["position", "change", "error"]},
        "data": {"type": "string", "description": "JSON"},
    },
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": _EVENT}}}
}


def reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(encode(value), status, dict(headers or {}), "application/json")


def wanted_of(request: Request, caller: Caller, limit: int | None, at: str = "") -> Wanted:
    """The form that a request wants its answer in."""
    headers = request.headers
    return Wanted(
        wanted_kind(headers.get("accept")),
        takes_gzip(headers.get("accept-encoding")),
        headers.get("if-none-match"),
        limit,
        caller.service.settings.max_result_rows,
        at,
    )


def sent(rendered: Rendered) -> Response:
    """An answer on its way: nothing, whole, or in pieces."""
    if rendered.body is None:
        return Response(status_code=304, headers=rendered.headers)
    if isinstance(rendered.body, bytes):
        return Response(rendered.body, headers=rendered.headers)
    return StreamingResponse(rendered.body, headers=rendered.headers)


def owners_soup(caller: Caller, owner: str | None, what: str) -> Soup:
    """The pot of which a list is made; others' need an admin."""
    if owner in (None, caller.principal):
        return caller.soup
    caller.check("admin")
    caller.note("listed the", what, str(owner))
    return caller.service.soup


Item = TypeVar("Item")


def page(
    items: Sequence[Item], limit: int, after: str | None, key: Callable[[Item], str]
) -> tuple[list[Item], str | None]:
    """Some of a list that is at hand: those after the one with that key."""
    start = 0
    if after is not None:
        start = next((place + 1 for place, one in enumerate(items) if key(one) == after), len(items))
    some = list(items[start : start + limit])
    return some, key(some[-1]) if some and start + limit < len(items) else None


def shown_query(query: Registered) -> dict[str, Any]:
    """A standing query as it is shown."""
    template, dot, _ = query.id.rpartition(".")
    return {
        "id": query.id,
        "name": query.name,
        "sql": query.sql,
        "state": query.state,
        "registered_at": from_micros(query.registered_at),
        "owner": query.owner,
        "shared": query.shared,
        "template": template if dot else None,
        "label": query.label,
        "place": query.cursor,
    }


def members_shown(members: Members, start: int, limit: int) -> list[dict[str, Any]]:
    """Queries of a template as they are shown, from a place on."""
    found = (members.find(number) for number in members[start : start + limit])
    return [shown_query(one) for one in found if one is not None]


def shown_plan(caller: Caller, plan: Mapping[str, Any]) -> dict[str, Any]:
    """How a query is answered, without what tells of others' queries; an admin sees all of it."""
    if caller.may("admin"):
        return dict(plan)
    shown = {key: value for key, value in plan.items() if key not in _OF_OTHERS}
    shape = plan.get("shape")
    if isinstance(shape, dict):
        shown["shape"] = {"text": shape["text"]}
    paths = plan.get("tuples_by_path")
    if isinstance(paths, dict):
        # Whether results are there already may be another's doing, who asks for the same.
        shown["tuples_by_path"] = {"indexed": sum(paths.values()) - paths["tail"], "tail": paths["tail"]}
    return shown


_OF_OTHERS = frozenset({"clause", "access", "materialized", "why"})
"""What follows from all queries of a stream, and not from one alone."""


def without_source_details(error: str | None) -> str | None:
    """What whoever is no admin may know of what is wrong with a source: its error may hold its options."""
    return None if error is None else "the source cannot be read; an admin is told why"


Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], body: bytes) -> Model:
    """A JSON body in its shape; for routes that take other bodies as well."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None


def need(value: str | None, name: str) -> str:
    """A parameter without which the rest means nothing."""
    if value is None:
        raise InvalidRows(f"?{name}= is missing", hint="with rows as the body, the rest is in the address")
    return value
