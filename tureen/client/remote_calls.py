"""Calls by handle, over HTTP: the methods behind handles, on the queries and templates of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tureen.arguments import check_count, check_moment, check_text, check_timeout
from tureen.client.events import EventFeed
from tureen.client.json_values import read_answer, timestamp_text
from tureen.client.listings import ListedQuery, MemberNumbers, segment
from tureen.client.row_types import RowTypes
from tureen.client.row_upload import TemplateRows
from tureen.client.transport import ARROW, Request, Transport
from tureen.results.answer import Answer, Change
from tureen.soup.standing import Following
from tureen.why.explanation import MAX_LIMIT, Explanation
from tureen.why.explanation_json import from_json

WAIT_SECONDS = 60.0
"""The default number of seconds that the server waits for a position."""


class RemoteCalls:
    """The queries and templates of a server, as the principal of a token sees them."""

    def __init__(self, transport: Transport) -> None:
        """Send requests over that transport."""
        self._transport = transport
        self._types = RowTypes(transport)
        self._template_rows = TemplateRows(transport)

    # Queries

    def registered(self, handle_or_name: str) -> ListedQuery:
        """The catalog entry of a query."""
        return ListedQuery.of(self._transport.get_json(_query_path(handle_or_name)))

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke a query; see `StandingQuery.invoke`."""
        params: dict[str, Any] = {}
        moment = check_moment(now)
        if moment is not None:
            params["now"] = timestamp_text(moment)
        seconds = check_timeout(timeout)
        if wait_for is not None:
            params["wait_for"] = wait_for
            params["timeout"] = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        path, headers = f"{_query_path(handle)}/result", {"Accept": ARROW}
        request = Request("GET", path, params, headers=headers, waits=params.get("timeout", 0.0))
        return read_answer(self._transport.send(request))

    def explain(self, handle: str) -> dict[str, Any]:
        """How a query is answered."""
        plan: dict[str, Any] = self._transport.get_json(f"{_query_path(handle)}/explain")
        return plan

    def why(self, handle: str, condition: str, now: datetime | None, limit: int) -> Explanation:
        """Why tuples are in a query's answer or not; see `StandingQuery.why`."""
        params: dict[str, Any] = {
            "where": check_text(condition, "a condition"),
            "limit": check_count(limit, "limit", MAX_LIMIT),
        }
        moment = check_moment(now)
        if moment is not None:
            params["now"] = timestamp_text(moment)
        return from_json(self._transport.send(Request("GET", f"{_query_path(handle)}/why", params)).json())

    def unregister(self, handle: str) -> None:
        """Unregister a query."""
        self._transport.delete(_query_path(handle))

    # Changes

    def changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow a query; see `StandingQuery.changes`."""
        return self._follow(f"{_query_path(handle)}/changes", asked)

    def template_changes(self, handle: str, asked: Following) -> Iterator[Change]:
        """Follow all queries of a template; see `QueryTemplate.changes`."""
        return self._follow(f"{_template_path(handle)}/changes", asked)

    def feed(self, since: str | None, timeout: float | None) -> Iterator[Change]:
        """Follow all queries and templates; see `AnySoup.feed`."""
        return self._follow("/v1/changes", Following(since, timeout))

    def _follow(self, path: str, asked: Following) -> Iterator[Change]:
        """The events of a path; a lost connection is reopened and continues after the last change."""
        if asked.since is not None:
            check_text(asked.since, "a position")
        turns = (("on", asked.on), ("hold", asked.hold))
        params = {name: check_text(text, name) for name, text in turns if text is not None}
        if asked.punctuations:
            params["punctuations"] = "true"
        seconds = check_timeout(asked.timeout)
        return EventFeed(self._transport, path, asked.since, seconds, self._types, params).changes()

    # Templates

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries, fetched on demand."""
        return MemberNumbers(self._transport, handle)

    def template_query(self, handle: str, index: int) -> ListedQuery:
        """A query of a template, by its index."""
        return ListedQuery.of(MemberNumbers(self._transport, handle).entry(index))

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Register a query for each row of parameters; see `QueryTemplate.add`."""
        return self._template_rows.add(check_text(handle, "a handle"), rows)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Unregister queries of a template; see `QueryTemplate.remove`."""
        return self._template_rows.remove(check_text(handle, "a handle"), numbers, where)

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched; see `QueryTemplate.explain`."""
        plan: dict[str, Any] = self._transport.get_json(f"{_template_path(handle)}/explain")
        return plan

    def unregister_template(self, handle: str) -> None:
        """Unregister a template and all its queries."""
        self._transport.delete(_template_path(handle))


def _query_path(handle: str) -> str:
    return f"/v1/queries/{segment(check_text(handle, 'a handle'))}"


def _template_path(handle: str) -> str:
    return f"/v1/templates/{segment(check_text(handle, 'a handle'))}"
