"""Parameters of routes: callers with a required scope, paging, times, and bodies that are validated by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import Depends, Header, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ValidationError, WithJsonSchema

from tureen.errors import InvalidRows
from tureen.service.authorization import Caller, RequireScope

Reader = Annotated[Caller, Depends(RequireScope("read"))]
Writer = Annotated[Caller, Depends(RequireScope("write"))]
Admin = Annotated[Caller, Depends(RequireScope("admin"))]
PeerCaller = Annotated[Caller, Depends(RequireScope("peer"))]
ReaderOrWriter = Annotated[Caller, Depends(RequireScope("read", "write"))]

MAX_PAGE = 1_000

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="the most items of the page")]
After = Annotated[str | None, Query(max_length=1_000, description="`next` of the previous page")]
Owner = Annotated[
    str | None, Query(max_length=255, description="for admins: another principal, or * for all principals")
]
Seconds = Annotated[float | None, Query(ge=0, le=86_400, allow_inf_nan=False, description="the most seconds to wait")]
Since = Annotated[str | None, Query(max_length=1 << 20, description="the position to continue from")]
On = Annotated[
    Literal["change", "turn"] | None,
    Query(description="for groups: every change, or only groups that come and go"),
]
Hold = Annotated[
    str | None, Query(max_length=100, description="with on=turn: how long a turn must have lasted, as in 30 seconds")
]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=1 << 20)]


def _parse_timestamp(text: object) -> datetime:
    try:
        return datetime.fromisoformat(str(text).upper())
    except ValueError:
        raise ValueError("must be an ISO 8601 time such as 2026-01-01T12:00:00Z") from None


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time"}),
    Query(description="an ISO 8601 time"),
]

Model = TypeVar("Model", bound=BaseModel)


def validate_body(model: type[Model], body: bytes) -> Model:
    """Validate a JSON body, for routes that also accept other media types."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None


def require_parameter(value: str | None, name: str) -> str:
    """The value of a query parameter that is required if the body holds rows only."""
    if value is None:
        raise InvalidRows(f"missing parameter ?{name}=", hint="only an application/json body can contain it")
    return value
