"""Responses of routes: JSON objects, pages of lists, rendered answers, and the parts that a caller may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tureen.handle import parse_member
from tureen.language.templates.member import member_text
from tureen.pot.members import Members
from tureen.pot.registered import Registered
from tureen.pot.status import count_owned
from tureen.service.authorization import Caller
from tureen.service.error_responses import encode_json
from tureen.service.rendering import Rendered, ResponseFormat, accepts_gzip, negotiate_media_type
from tureen.soup.served_soup import ServedSoup
from tureen.window import from_micros


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return encoded_response(encode_json(value), status, headers)


def encoded_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with a body that is JSON."""
    return Response(body, status, dict(headers or {}), "application/json")


def response_format(request: Request, caller: Caller, limit: int | None, now: str = "") -> ResponseFormat:
    """The response format that the headers and parameters of a request ask for."""
    headers = request.headers
    return ResponseFormat(
        negotiate_media_type(headers.get("accept")),
        accepts_gzip(headers.get("accept-encoding")),
        headers.get("if-none-match"),
        limit,
        caller.service.settings.max_result_rows,
        now,
    )


def to_response(rendered: Rendered) -> Response:
    """A rendered answer as a response: 304, one body, or chunks."""
    if rendered.body is None:
        return Response(status_code=304, headers=rendered.headers)
    if isinstance(rendered.body, bytes):
        return Response(rendered.body, headers=rendered.headers)
    return StreamingResponse(rendered.body, headers=rendered.headers)


def soup_of_owner(caller: Caller, owner: str | None, listed: str) -> ServedSoup:
    """The pot as seen for listing an owner's objects; those of other principals need the scope `admin`."""
    if owner in (None, caller.principal):
        return caller.soup
    caller.require_scope("admin")
    caller.log_admin_access("listed the", listed, str(owner))
    return caller.service.soup


Item = TypeVar("Item")


def page(
    items: Sequence[Item], limit: int, after: str | None, key: Callable[[Item], str]
) -> tuple[list[Item], str | None]:
    """A page of a list, from the item after the one with the key `after`, and the key for the next page."""
    start = 0
    if after is not None:
        start = next((index + 1 for index, item in enumerate(items) if key(item) == after), len(items))
    page_items = list(items[start : start + limit])
    return page_items, key(page_items[-1]) if page_items and start + limit < len(items) else None


def query_info(query: Registered) -> dict[str, Any]:
    """The JSON object of a standing query."""
    member = parse_member(query.id)
    return {
        "id": query.id,
        "name": query.name,
        "sql": query.sql,
        "language": query.language,
        "state": query.state,
        "registered_at": from_micros(query.registered_at),
        "owner": query.owner,
        "shared": query.shared,
        "template": None if member is None else member.template,
        "label": query.label,
        "place": query.cursor,
    }


def member_infos(members: Members, start: int, limit: int) -> list[dict[str, Any]]:
    """The JSON objects of a template's queries, from an index on."""
    queries = (members.find(number, member_text) for number in members[start : start + limit])
    return [query_info(query) for query in queries if query is not None]


def visible_plan(caller: Caller, plan: Mapping[str, Any]) -> dict[str, Any]:
    """A query's plan, for callers other than admins without the fields that depend on queries of other principals."""
    if caller.has_scope("admin"):
        return dict(plan)
    visible = {key: value for key, value in plan.items() if key not in _SHARED_PLAN_FIELDS}
    shape = plan.get("shape")
    if isinstance(shape, dict):
        visible["shape"] = {"text": shape["text"]}
    paths = plan.get("tuples_by_path")
    if isinstance(paths, dict):
        # Whether cells are materialized can depend on another principal's query with the same clause.
        visible["tuples_by_path"] = {"indexed": sum(paths.values()) - paths["tail"], "tail": paths["tail"]}
    return visible


_SHARED_PLAN_FIELDS = frozenset({"clause", "access", "materialized", "why"})
"""The fields of a plan that depend on all queries of a stream."""


def hide_source_error(error: str | None) -> str | None:
    """The error of a source for callers other than admins: the original may contain the source's options."""
    return None if error is None else "the source cannot be read; admins see the reason"


def own_status(caller: Caller, full: Mapping[str, Any]) -> dict[str, Any]:
    """The status without fields that depend on queries of other principals, which could reveal them."""
    with caller.service.catalog.read() as tx:
        queries = count_owned(tx, caller.principal)
    streams = {
        name: {
            key: hide_source_error(value) if key == "error" else value
            for key, value in stream.items()
            if key not in _QUERY_DEPENDENT
        }
        for name, stream in full["streams"].items()
    }
    shown = {key: value for key, value in full.items() if key not in _FOR_ADMINS}
    return {**shown, "streams": streams, "queries": queries}


def visible_status(caller: Caller, full: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status as a caller may see it."""
    return full if caller.has_scope("admin") else own_status(caller, full)


_FOR_ADMINS = frozenset({"clauses", "peers", "links", "sent"})
_QUERY_DEPENDENT = frozenset({"bytes", "query_runs", "eager_clauses", "cell_files", "key_files", "debts", "needed"})
