"""A pot that somebody else serves, with the methods of an embedded one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import pyarrow as pa

from tureen.arguments import check_moment, check_text, check_timeout
from tureen.client.events import Following
from tureen.client.json_values import answer_of, arrow_bytes, dated, moment_text
from tureen.client.listings import ListedQuery, MemberNumbers, listed, pages, segment
from tureen.client.remote_statements import Outcome, run
from tureen.client.retry import PATIENCE
from tureen.client.row_types import RowTypes
from tureen.client.row_upload import Pushes, Rules, Tables, parameter_table
from tureen.client.transport import ARROW, Authority, Request, Transport
from tureen.errors import TureenError, UnknownQuery
from tureen.position import Pushed
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.standing import QueryTemplate, StandingQuery

TIMEOUT = 60.0
"""For how many seconds the server may be silent, unless the caller says otherwise."""

WAIT_SECONDS = 60.0
"""How long the server waits for a position if nothing else is said."""

Positions = str | list[str] | tuple[str, ...] | set[str]


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    ca: Authority | None = None,
) -> Client:
    """Use the pot that a server at that address keeps, as if it were opened here.

    `timeout` is for how many seconds the server may be silent, `patience` for how many a request is tried again when
    the server is busy, is being restarted, or cannot be reached any more. `ca` is a file of certificates in PEM that
    sign the server's, where none of the usual authorities does; or an `ssl.SSLContext`.
    """
    return Client(url, token, timeout=timeout, patience=patience, ca=ca)


class Client:
    """A served pot in use: what `tureen.open` gives, over HTTP."""

    def __init__(
        self, url: str, token: str | None, *, timeout: float, patience: float, ca: Authority | None = None
    ) -> None:
        """Speak to that server; see `connect`."""
        check_text(url, "the address of a server")
        if token is not None:
            check_text(token, "a token")
        self.transport = Transport(url, token, timeout=timeout, patience=patience, ca=ca)
        self._pushes = Pushes(self.transport)
        self._tables = Tables(self.transport)
        self._rules = Rules(self.transport)
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
        """Make a stream, fed by `push` or by a Spark source; `if_not_exists` leaves one of that name as it is."""
        wanted: dict[str, Any] = {"name": name, "schema": schema, "time": time, "retain": retain, "clock": clock}
        wanted |= {"source": source, "if_not_exists": if_not_exists or None}
        if isinstance(schema, Schema):
            wanted |= {"schema": schema.sql, "time": time or schema.time}
        self._post("/v1/streams", {key: value for key, value in wanted.items() if value is not None})

    def drop_stream(self, name: str) -> None:
        """Remove a stream, its tuples, and the queries over it."""
        self._pushes.forget(check_text(name, "a stream's name"))
        self._delete(f"/v1/streams/{segment(name)}")

    def streams(self) -> list[dict[str, Any]]:
        """The streams, in order of creation."""
        return list(pages(self.transport, "/v1/streams", "streams"))

    def push(self, stream: str, rows: Any, *, key: str | None = None) -> Pushed:
        """Add rows to a stream; they are durable when this returns. Returns their position, with `added` beside it.

        All rows are taken or none. With a `key`, pushing the same again changes nothing: `added` is 0 then. Without one
        the client takes one of its own, so that a push whose answer was lost is not there twice.
        """
        return self._pushes.push(stream, rows, key)

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that could not be taken, with the reason."""
        path = f"/v1/streams/{segment(check_text(stream, 'a stream’s name'))}/rejected"
        return [dated(one) for one in pages(self.transport, path, "rejected")]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Make a table: dimension data, without time; `if_not_exists` leaves one of that name as it is.

        A file that `rows` names is one of this process.
        """
        self._tables.create(name, schema, rows, if_not_exists=if_not_exists)

    def replace_table(self, name: str, rows: Any) -> None:
        """Put new rows in the place of all that a table holds, in one step: nobody sees a part of them."""
        self._tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        """Remove a table."""
        self._delete(f"/v1/tables/{segment(check_text(name, 'a table’s name'))}")

    def table(self, name: str) -> pa.Table:
        """All rows of a table."""
        return self._tables.read(check_text(name, "a table's name"))

    def tables(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""
        return [dated(one) for one in pages(self.transport, "/v1/tables", "tables")]

    # Queries

    def register(self, sql: str, *, name: str | None = None, materialize: bool | str = "auto") -> StandingQuery:
        """Let a query stand; its handle answers from now on, over what came before as well.

        `materialize=True` keeps its results ready at arrival; `False` evaluates it from the index when it is invoked;
        `"auto"` does the one or the other, by what it costs and how often it is invoked.
        """
        wanted = {"sql": _said(sql, "a query's SQL"), "materialize": materialize}
        told = self._post("/v1/queries", wanted if name is None else {**wanted, "name": name})
        return StandingQuery(self, told["id"], told["name"], told["sql"])

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        """Let a query stand for each row of parameters, written `:name` in the select list, in WHERE or in HAVING.

        `params` is a list of dicts, an Arrow table, or a pandas or polars DataFrame; it travels as Arrow. `label` names
        a column of it that comes with each change, whether the SQL uses it or not.
        """
        wanted = {"sql": _said(sql, "a query's SQL")}
        if name is not None:
            wanted["name"] = check_text(name, "a template's name")
        if label is not None:
            wanted["label"] = check_text(label, "a label's column")
        content = arrow_bytes(parameter_table(params))
        request = Request("POST", "/v1/templates", wanted, content=content, headers={"Content-Type": ARROW})
        return self._handle(self.transport.send(request).json())

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""
        return self._handle(self._get(f"/v1/templates/{segment(check_text(handle_or_name, 'a template’s name'))}"))

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        """The templates, in order of registration, with the number of their queries that stand.

        With an `owner`, those of that principal; of all principals with "*". For an admin.
        """
        return [dated(one) for one in pages(self.transport, "/v1/templates", "templates", owner=owner)]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        """One template, as `templates` lists it."""
        return dated(self._get(f"/v1/templates/{segment(check_text(handle_or_name, 'a template’s name'))}"))

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries that stand, fetched as far as they are looked at."""
        return MemberNumbers(self.transport, handle)

    def template_query(self, handle: str, place: int) -> StandingQuery:
        """The n-th of a template's queries that stand."""
        told = MemberNumbers(self.transport, handle).told(place)
        return StandingQuery(self, told["id"], told["name"], told["sql"], label=told["label"])

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Let a query stand for each of some more rows of parameters; see `QueryTemplate.add`."""
        return self._rules.add(check_text(handle, "a handle"), rows)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Let some queries of a template stand no longer; see `QueryTemplate.remove`."""
        return self._rules.remove(check_text(handle, "a handle"), numbers, where)

    def unregister_template(self, handle: str) -> None:
        """Let all queries of a template stand no longer."""
        self._delete(f"/v1/templates/{segment(check_text(handle, 'a handle'))}")

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""
        found = self.registered(check_text(handle_or_name, "a query's name"))
        return StandingQuery(self, found.id, found.name, found.sql, label=found.label)

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        """The standing queries, in order of registration; those of templates are in their `QueryTemplate`.

        With a `limit`, so many at most; the `place` of the last of them, as `after`, gives the next. With an `owner`,
        those of that principal; of all principals with "*". For an admin.
        """
        found = listed(self.transport, "/v1/queries", "queries", after, limit, owner)
        return [StandingQuery(self, one["id"], one["name"], one["sql"], one["place"]) for one in found]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        """The same as the catalog has them now."""
        return [dated(one) for one in listed(self.transport, "/v1/queries", "queries", after, limit, owner)]

    def share(self, handle: str, shared: bool = True) -> None:
        """Let others invoke and follow a query, or all of a template's, by its handle; or no longer."""
        name = segment(check_text(handle, "a handle"))
        try:
            self.transport.send(Request("PATCH", f"/v1/queries/{name}", json={"shared": shared}))
        except UnknownQuery:
            self.transport.send(Request("PATCH", f"/v1/templates/{name}", json={"shared": shared}))

    def unregister(self, handle: str) -> None:
        """Let the query of that handle stand no longer."""
        self._delete(f"/v1/queries/{segment(check_text(handle, 'a handle'))}")

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke the query of that handle; see `StandingQuery.invoke`."""
        params: dict[str, Any] = {}
        moment = check_moment(now)
        if moment is not None:
            params["now"] = moment_text(moment)
        seconds = check_timeout(timeout)
        if wait_for is not None:
            params["wait_for"] = wait_for
            params["timeout"] = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        path = f"/v1/queries/{segment(check_text(handle, 'a handle'))}/result"
        return answer_of(self.transport.send(_arrow("GET", path, params=params, waits=params.get("timeout", 0.0))))

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """The answer of a query that does not stand."""
        if now is not None:
            raise TureenError("a server answers a query that does not stand at its own NOW", hint="register it first")
        return answer_of(self.transport.send(_arrow("POST", "/v1/sql", json={"sql": sql}, repeatable=True)))

    def changes(self, handle: str, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer of that handle; see `StandingQuery.changes`.

        A connection that is lost is made again, and goes on after the last change.
        """
        return self._follow(f"/v1/queries/{segment(check_text(handle, 'a handle'))}/changes", since, timeout)

    def template_changes(self, handle: str, *, since: str | None, timeout: float | None) -> Iterator[Change]:
        """The rows that join the answers of a template's queries; see `QueryTemplate.changes`."""
        return self._follow(f"/v1/templates/{segment(check_text(handle, 'a handle'))}/changes", since, timeout)

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answers of all queries and templates of one's own, over one connection.

        Its positions are its own: go on from one of them, and not from an answer's.
        """
        return self._follow("/v1/changes", since, timeout)

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query of that handle is answered."""
        found: dict[str, Any] = self._get(f"/v1/queries/{segment(check_text(handle, 'a handle'))}/explain")
        return found

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched with new rows."""
        found: dict[str, Any] = self._get(f"/v1/templates/{segment(check_text(handle, 'a handle'))}/explain")
        return found

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How a query that does not stand would be answered."""
        request = Request("POST", "/v1/sql", json={"sql": f"EXPLAIN {sql}"}, repeatable=True)
        found: dict[str, Any] = self.transport.send(request).json()["object"]
        return found

    def registered(self, handle: str) -> ListedQuery:
        """The query of that handle as the catalog has it now."""
        return ListedQuery.of(self._get(f"/v1/queries/{segment(check_text(handle, 'a handle'))}"))

    def sql(self, text: str) -> Outcome:
        """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT (docs/statements.md).

        The file of `CREATE TABLE … FROM 'file'` is one of this process.
        """
        return run(self, self.transport, _said(text, "a statement"))

    # The pot

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        """Wait until a push is in, or until what an answer reflects is here; all of them if several are given."""
        wanted = list(position) if isinstance(position, list | tuple | set) else [position]
        seconds = check_timeout(timeout)
        waits = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        if wanted:
            self.transport.send(Request("GET", "/v1/wait", {"position": wanted, "timeout": waits}, waits=waits))

    def status(self) -> dict[str, Any]:
        """What is there: rows, runs, tail, debts, queries, position, lag."""
        found: dict[str, Any] = self._get("/v1/status")
        return found

    def close(self) -> None:
        """Let go of the connections; the server goes on."""
        self.transport.close()

    def __enter__(self) -> Client:
        """Use the server in a block that lets go of it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the connections."""
        self.close()

    def __repr__(self) -> str:
        """Say which server it is."""
        return f"<tureen.Client {self.url!r}>"

    def _handle(self, told: dict[str, Any]) -> QueryTemplate:
        return QueryTemplate(self, told["id"], told["name"], told["sql"])

    def _follow(self, path: str, since: str | None, timeout: float | None) -> Iterator[Change]:
        if since is not None:
            check_text(since, "a position")
        return Following(self.transport, path, since, check_timeout(timeout), self._types.read).changes()

    def _get(self, path: str) -> Any:
        return self.transport.send(Request("GET", path)).json()

    def _post(self, path: str, body: Any) -> Any:
        return self.transport.send(Request("POST", path, json=body)).json()

    def _delete(self, path: str) -> None:
        self.transport.send(Request("DELETE", path))


def _said(text: str, what: str) -> str:
    """A text for the server to read; for one with nothing in it, a blank, so that it is the parser that says so."""
    return check_text(text, what) or " "


def _arrow(method: str, path: str, **more: Any) -> Request:
    """A request for an answer in Arrow."""
    return Request(method, path, headers={"Accept": ARROW}, **more)
