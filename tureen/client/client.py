"""A pot behind a server, with the methods of an embedded pot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import pyarrow as pa

from tureen.arguments import check_moment, check_text, check_timeout
from tureen.client.events import EventFeed
from tureen.client.json_values import arrow_bytes, read_answer, timestamp_text, with_datetimes
from tureen.client.listings import ListedQuery, MemberNumbers, list_entries, pages, segment
from tureen.client.remote_statements import Outcome, run
from tureen.client.retry import PATIENCE
from tureen.client.row_types import RowTypes
from tureen.client.row_upload import RowUploads, TableUploads, TemplateRows, parameter_table
from tureen.client.transport import ARROW, Authority, Request, Transport
from tureen.errors import TureenError, UnknownQuery
from tureen.position import Pushed
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.standing import QueryTemplate, StandingQuery

TIMEOUT = 60.0
"""The default number of seconds without a byte from the server before a request fails."""

WAIT_SECONDS = 60.0
"""The default number of seconds that the server waits for a position."""

Positions = str | list[str] | tuple[str, ...] | set[str]


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    ca: Authority | None = None,
) -> Client:
    """Connect to the server at a URL; the result has the methods of a pot opened by `tureen.open`.

    `timeout` is the number of seconds without a byte from the server before a request fails, `patience` the number of
    seconds for which a request is retried while the server is busy, restarting or unreachable. `ca` is a PEM file with
    the certificates to trust instead of the system's, or an `ssl.SSLContext`.
    """
    return Client(url, token, timeout=timeout, patience=patience, ca=ca)


class Client:
    """A connection to a server, with the methods of `tureen.Soup`."""

    def __init__(
        self, url: str, token: str | None, *, timeout: float, patience: float, ca: Authority | None = None
    ) -> None:
        """Prepare connections to a server; see `connect`."""
        check_text(url, "the address of a server")
        if token is not None:
            check_text(token, "a token")
        self.transport = Transport(url, token, timeout=timeout, patience=patience, ca=ca)
        self._uploads = RowUploads(self.transport)
        self._tables = TableUploads(self.transport)
        self._template_rows = TemplateRows(self.transport)
        self._types = RowTypes(self.transport)
        self.url = str(self.transport.url)

    # Streams

    def create_stream(
        self,
        name: str,
        schema: str | Schema,
        *,
        time: str | None = None,
        retain: str | None = None,
        clock: str = "wall",
        source: dict[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a stream, fed by `push` or by a Spark source; `if_not_exists` keeps an existing stream."""
        body: dict[str, Any] = {"name": name, "schema": schema, "time": time, "retain": retain, "clock": clock}
        body |= {"source": source, "if_not_exists": if_not_exists or None}
        if isinstance(schema, Schema):
            body |= {"schema": schema.sql, "time": time or schema.time}
        self._post("/v1/streams", {key: value for key, value in body.items() if value is not None})

    def drop_stream(self, name: str) -> None:
        """Drop a stream, its tuples, and the queries over it."""
        self._uploads.forget(check_text(name, "a stream's name"))
        self._delete(f"/v1/streams/{segment(name)}")

    def streams(self) -> list[dict[str, Any]]:
        """The streams, in order of creation."""
        return list(pages(self.transport, "/v1/streams", "streams"))

    def push(self, stream: str, rows: Any, *, key: str | None = None) -> Pushed:
        """Add rows to a stream; they are durable when this returns. Returns their position, which has `added`.

        Either all rows are added or none. Pushing the same rows under the same `key` again changes nothing: `added` is
        then 0. Without a `key` the client generates one, so that a push whose response was lost is not added twice.
        """
        return self._uploads.push(stream, rows, key)

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that were rejected, with the reason."""
        path = f"/v1/streams/{segment(check_text(stream, 'a stream’s name'))}/rejected"
        return [with_datetimes(entry) for entry in pages(self.transport, path, "rejected")]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a table: dimension data, without time; `if_not_exists` keeps an existing table.

        If `rows` is a path, the file is read by this process and not by the server.
        """
        self._tables.create(name, schema, rows, if_not_exists=if_not_exists)

    def replace_table(self, name: str, rows: Any) -> None:
        """Replace all rows of a table, atomically."""
        self._tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        self._delete(f"/v1/tables/{segment(check_text(name, 'a table’s name'))}")

    def table(self, name: str) -> pa.Table:
        """All rows of a table."""
        return self._tables.read(check_text(name, "a table's name"))

    def tables(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""
        return [with_datetimes(entry) for entry in pages(self.transport, "/v1/tables", "tables")]

    # Queries

    def register(self, sql: str, *, name: str | None = None, materialize: bool | str = "auto") -> StandingQuery:
        """Register a standing query; its answers include the tuples that arrived before it.

        `materialize=True` computes its results as tuples arrive, `False` when it is invoked, and `"auto"` chooses
        between the two by their cost and by how often the query is invoked.
        """
        body = {"sql": _sql_text(sql, "a query's SQL"), "materialize": materialize}
        entry = self._post("/v1/queries", body if name is None else {**body, "name": name})
        return StandingQuery(self, entry["id"], entry["name"], entry["sql"])

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        """Register a query for each row of parameters, written `:name` in the select list, in WHERE or in HAVING.

        `params` is a list of dicts, an Arrow table, or a pandas or polars DataFrame. `label` names a column of it that
        is reported with each change; the SQL need not use that column.
        """
        options = {"sql": _sql_text(sql, "a query's SQL")}
        if name is not None:
            options["name"] = check_text(name, "a template's name")
        if label is not None:
            options["label"] = check_text(label, "a label's column")
        content = arrow_bytes(parameter_table(params))
        request = Request("POST", "/v1/templates", options, content=content, headers={"Content-Type": ARROW})
        return self._template(self.transport.send(request).json())

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""
        return self._template(self._get(f"/v1/templates/{segment(check_text(handle_or_name, 'a template’s name'))}"))

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        """The templates, in order of registration, with the number of their registered queries.

        An admin can list those of another principal with `owner`, or those of all principals with `owner="*"`.
        """
        return [with_datetimes(entry) for entry in pages(self.transport, "/v1/templates", "templates", owner=owner)]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        """One template, as `templates` lists it."""
        return with_datetimes(self._get(f"/v1/templates/{segment(check_text(handle_or_name, 'a template’s name'))}"))

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's registered queries, fetched on demand."""
        return MemberNumbers(self.transport, handle)

    def template_query(self, handle: str, index: int) -> StandingQuery:
        """The template's registered query at an index."""
        entry = MemberNumbers(self.transport, handle).entry(index)
        return StandingQuery(self, entry["id"], entry["name"], entry["sql"], label=entry["label"])

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Register a query for each additional row of parameters; see `QueryTemplate.add`."""
        return self._template_rows.add(check_text(handle, "a handle"), rows)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Unregister queries of a template; see `QueryTemplate.remove`."""
        return self._template_rows.remove(check_text(handle, "a handle"), numbers, where)

    def unregister_template(self, handle: str) -> None:
        """Unregister a template and all of its queries."""
        self._delete(f"/v1/templates/{segment(check_text(handle, 'a handle'))}")

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""
        query = self.registered(check_text(handle_or_name, "a query's name"))
        return StandingQuery(self, query.id, query.name, query.sql, label=query.label)

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        """The standing queries, in order of registration; those of templates are in their `QueryTemplate`.

        `limit` is the largest number of queries to return; pass the `place` of the last one as `after` to get the next
        page. An admin can list those of another principal with `owner`, or those of all principals with `owner="*"`.
        """
        entries = list_entries(self.transport, "/v1/queries", "queries", after, limit, owner)
        return [StandingQuery(self, entry["id"], entry["name"], entry["sql"], entry["place"]) for entry in entries]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        """The catalog entries of the standing queries; see `queries`."""
        entries = list_entries(self.transport, "/v1/queries", "queries", after, limit, owner)
        return [with_datetimes(entry) for entry in entries]

    def share(self, handle: str, shared: bool = True) -> None:
        """Allow other principals to use a query or a template by its handle; `shared=False` revokes that."""
        name = segment(check_text(handle, "a handle"))
        try:
            self.transport.send(Request("PATCH", f"/v1/queries/{name}", json={"shared": shared}))
        except UnknownQuery:
            self.transport.send(Request("PATCH", f"/v1/templates/{name}", json={"shared": shared}))

    def unregister(self, handle: str) -> None:
        """Unregister the query of that handle."""
        self._delete(f"/v1/queries/{segment(check_text(handle, 'a handle'))}")

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke the query of that handle; see `StandingQuery.invoke`."""
        params: dict[str, Any] = {}
        moment = check_moment(now)
        if moment is not None:
            params["now"] = timestamp_text(moment)
        seconds = check_timeout(timeout)
        if wait_for is not None:
            params["wait_for"] = wait_for
            params["timeout"] = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        path = f"/v1/queries/{segment(check_text(handle, 'a handle'))}/result"
        return read_answer(self.transport.send(_arrow("GET", path, params=params, waits=params.get("timeout", 0.0))))

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """Answer an unregistered query."""
        if now is not None:
            raise TureenError(
                "now= is not supported for unregistered queries on a server", hint="register the query first"
            )
        return read_answer(self.transport.send(_arrow("POST", "/v1/sql", json={"sql": sql}, repeatable=True)))

    def changes(self, handle: str, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer of that handle; see `StandingQuery.changes`.

        A lost connection is reopened and continues after the last change.
        """
        return self._follow(f"/v1/queries/{segment(check_text(handle, 'a handle'))}/changes", since, timeout)

    def template_changes(self, handle: str, *, since: str | None, timeout: float | None) -> Iterator[Change]:
        """The rows that join the answers of a template's queries; see `QueryTemplate.changes`."""
        return self._follow(f"/v1/templates/{segment(check_text(handle, 'a handle'))}/changes", since, timeout)

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answers of all of the principal's queries and templates, over one connection.

        Continue only from positions of this feed: those of answers and of single queries do not fit.
        """
        return self._follow("/v1/changes", since, timeout)

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query of that handle is answered."""
        plan: dict[str, Any] = self._get(f"/v1/queries/{segment(check_text(handle, 'a handle'))}/explain")
        return plan

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched with new rows."""
        plan: dict[str, Any] = self._get(f"/v1/templates/{segment(check_text(handle, 'a handle'))}/explain")
        return plan

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How an unregistered query would be answered."""
        request = Request("POST", "/v1/sql", json={"sql": f"EXPLAIN {sql}"}, repeatable=True)
        plan: dict[str, Any] = self.transport.send(request).json()["object"]
        return plan

    def registered(self, handle: str) -> ListedQuery:
        """The catalog entry of that handle's query."""
        return ListedQuery.of(self._get(f"/v1/queries/{segment(check_text(handle, 'a handle'))}"))

    def sql(self, text: str) -> Outcome:
        """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT (docs/statements.md).

        The file of `CREATE TABLE … FROM 'file'` is read by this process and not by the server.
        """
        return run(self, self.transport, _sql_text(text, "a statement"))

    # The pot

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        """Wait until answers reflect a position, or all of several positions."""
        positions = list(position) if isinstance(position, list | tuple | set) else [position]
        seconds = check_timeout(timeout)
        waits = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        if positions:
            self.transport.send(Request("GET", "/v1/wait", {"position": positions, "timeout": waits}, waits=waits))

    def status(self) -> dict[str, Any]:
        """Counts of rows, runs, tail, debts and queries, the position, and the lag."""
        status: dict[str, Any] = self._get("/v1/status")
        return status

    def close(self) -> None:
        """Close the connections; the server keeps running."""
        self.transport.close()

    def __enter__(self) -> Client:
        """Return this client; the end of the block closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def __repr__(self) -> str:
        """Show the server's URL."""
        return f"<tureen.Client {self.url!r}>"

    def _template(self, entry: dict[str, Any]) -> QueryTemplate:
        return QueryTemplate(self, entry["id"], entry["name"], entry["sql"])

    def _follow(self, path: str, since: str | None, timeout: float | None) -> Iterator[Change]:
        if since is not None:
            check_text(since, "a position")
        return EventFeed(self.transport, path, since, check_timeout(timeout), self._types.read).changes()

    def _get(self, path: str) -> Any:
        return self.transport.send(Request("GET", path)).json()

    def _post(self, path: str, body: Any) -> Any:
        return self.transport.send(Request("POST", path, json=body)).json()

    def _delete(self, path: str) -> None:
        self.transport.send(Request("DELETE", path))


def _sql_text(text: str, label: str) -> str:
    """SQL to send; empty text becomes a blank, so that the server's parser reports it, as for an embedded pot."""
    return check_text(text, label) or " "


def _arrow(method: str, path: str, **options: Any) -> Request:
    """A request for an answer in Arrow."""
    return Request(method, path, headers={"Accept": ARROW}, **options)
