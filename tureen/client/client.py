"""A pot behind a server, with the methods of an embedded pot."""

# ruff: noqa: D102 - `AnySoup` documents the methods

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from tureen.arguments import check_format, check_language, check_positive, check_text, check_timeout
from tureen.client.json_values import arrow_bytes, read_answer, with_datetimes
from tureen.client.listings import list_entries, pages, segment
from tureen.client.remote_calls import WAIT_SECONDS, RemoteCalls
from tureen.client.remote_statements import run
from tureen.client.retry import PATIENCE
from tureen.client.row_upload import RowUploads, TableUploads, parameter_table
from tureen.client.transport import ARROW, TIMEOUT, Authority, Request, Transport
from tureen.errors import TureenError, UnknownQuery
from tureen.functions.function_source import function_of
from tureen.position import Pushed
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.interface import AnyPunctuation, AnySoup, Outcome, Positions
from tureen.soup.standing import QueryTemplate, StandingQuery, standing_query


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


class Client(AnySoup):
    """A connection to a server, with the methods of an open pot. Its address is `url`."""

    def __init__(
        self, url: str, token: str | None, *, timeout: float, patience: float, ca: Authority | None = None
    ) -> None:
        """Prepare connections to a server; see `connect`."""
        self._transport = Transport(url, token, timeout=timeout, patience=patience, ca=ca)
        self._calls = RemoteCalls(self._transport)
        self._uploads = RowUploads(self._transport)
        self._tables = TableUploads(self._transport)
        self.url = str(self._transport.url)

    # Streams

    def create_stream(
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        time: str | None = None,
        retain: str | None = None,
        clock: str | None = None,
        source: dict[str, Any] | None = None,
        query: str | None = None,
        unique: Sequence[str] | None = None,
        lateness: str | None = None,
        punctuate: str | None = None,
        key: Sequence[str] | None = None,
        item: str | None = None,
        if_not_exists: bool = False,
    ) -> None:
        body: dict[str, Any] = {"name": name, "schema": schema, "time": time, "retain": retain, "clock": clock}
        body |= {"source": source, "query": query, "item": item, "if_not_exists": if_not_exists or None}
        body |= {"unique": unique if unique is None or isinstance(unique, str) else list(unique), "lateness": lateness}
        body |= {"punctuate": punctuate, "key": key if key is None or isinstance(key, str) else list(key)}
        if isinstance(schema, Schema):
            body |= {"schema": schema.sql, "time": time or schema.time}
        self._transport.post_json("/v1/streams", {key: value for key, value in body.items() if value is not None})

    def drop_stream(self, name: str) -> None:
        self._uploads.forget(check_text(name, "a stream's name"))
        self._transport.delete(f"/v1/streams/{segment(name)}")

    def streams(self) -> list[dict[str, Any]]:
        return list(pages(self._transport, "/v1/streams", "streams"))

    def push(
        self,
        stream: str,
        rows: Any,
        *,
        key: str | None = None,
        punctuations: Iterable[AnyPunctuation] | None = None,
        format: str | None = None,  # noqa: A002 - the name people expect
        batch: int = 10_000,
    ) -> Pushed:
        if not check_format(format):
            return self._uploads.push(stream, rows, key, punctuations or ())
        pushed = self._uploads.push_xml(stream, rows, key, check_positive(batch, "batch"))
        return pushed if not punctuations else self._uploads.push(stream, [], None, punctuations)

    def punctuate(self, stream: str, where: AnyPunctuation, *, key: str | None = None) -> Pushed:
        return self._uploads.punctuate(stream, where, key)

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        path = f"/v1/streams/{segment(check_text(stream, 'a stream’s name'))}/rejected"
        return [with_datetimes(entry) for entry in pages(self._transport, path, "rejected")]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        self._tables.create(name, schema, rows, if_not_exists=if_not_exists)

    def replace_table(self, name: str, rows: Any) -> None:
        self._tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        self._transport.delete(f"/v1/tables/{segment(check_text(name, 'a table’s name'))}")

    def table(self, name: str) -> pa.Table:
        return self._tables.read(check_text(name, "a table's name"))

    def tables(self) -> list[dict[str, Any]]:
        return [with_datetimes(entry) for entry in pages(self._transport, "/v1/tables", "tables")]

    # Functions

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        returns: str,
        *,
        arguments: str,
        vectorized: bool = False,
        replace: bool = False,
    ) -> None:
        new = function_of(name, function, returns, arguments, vectorized=vectorized)
        body = {"name": new.name, "returns": new.returns.sql, "arguments": arguments, "vectorized": new.vectorized}
        code = {"path": new.path} if new.source is None else {"source": new.source}
        self._transport.post_json("/v1/functions", {**body, **code, "replace": replace})

    def drop_function(self, name: str) -> None:
        self._transport.delete(f"/v1/functions/{segment(check_text(name, 'a function’s name'))}")

    def functions(self) -> list[dict[str, Any]]:
        return [with_datetimes(entry) for entry in pages(self._transport, "/v1/functions", "functions")]

    # Peers

    def peers(self) -> list[dict[str, Any]]:
        return [with_datetimes(entry) for entry in pages(self._transport, "/v1/peers", "peers")]

    def network(self) -> dict[str, Any]:
        return with_datetimes(self._transport.get_json("/v1/network"))

    def add_peer(self, name: str, url: str, *, token: str | None = None, ca: str | None = None) -> None:
        body = {"name": check_text(name, "a peer's name"), "url": check_text(url, "the address of a server")}
        options = {"token": token, "ca": ca}
        self._transport.post_json("/v1/peers", body | {key: text for key, text in options.items() if text is not None})

    def remove_peer(self, name: str) -> None:
        self._transport.delete(_peer_path(name))

    def share_stream(self, peer: str, stream: str) -> None:
        path = f"{_peer_path(peer)}/shares/{segment(check_text(stream, 'a stream’s name'))}"
        self._transport.send(Request("PUT", path))

    def unshare_stream(self, peer: str, stream: str) -> None:
        self._transport.delete(f"{_peer_path(peer)}/shares/{segment(check_text(stream, 'a stream’s name'))}")

    # Queries

    def register(
        self,
        sql: str,
        *,
        name: str | None = None,
        materialize: bool | str = "auto",
        plan: str | None = None,
        jit: bool | None = None,
        language: str = "sql",
    ) -> StandingQuery:
        body: dict[str, Any] = {"sql": _sql_text(sql, "a query's SQL"), "materialize": materialize}
        chosen_language = None if check_language(language) == "sql" else language
        options = {"name": name, "plan": plan, "jit": jit, "language": chosen_language}
        body |= {option: value for option, value in options.items() if value is not None}
        entry = self._transport.post_json("/v1/queries", body)
        return StandingQuery(self._calls, entry["id"], entry["name"], entry["sql"])

    def query(self, handle_or_name: str) -> StandingQuery:
        return standing_query(self._calls, self._calls.registered(check_text(handle_or_name, "a query's name")))

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        entries = list_entries(self._transport, "/v1/queries", "queries", after, limit, owner)
        return [
            StandingQuery(self._calls, entry["id"], entry["name"], entry["sql"], entry["place"]) for entry in entries
        ]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        entries = list_entries(self._transport, "/v1/queries", "queries", after, limit, owner)
        return [with_datetimes(entry) for entry in entries]

    def share(self, handle: str, shared: bool = True) -> None:
        name = segment(check_text(handle, "a handle"))
        try:
            self._transport.send(Request("PATCH", f"/v1/queries/{name}", json={"shared": shared}))
        except UnknownQuery:
            self._transport.send(Request("PATCH", f"/v1/templates/{name}", json={"shared": shared}))

    def answer_once(self, sql: str, *, now: datetime | None = None, language: str = "sql") -> Answer:
        if now is not None:
            raise TureenError(
                "now= is not supported for unregistered queries on a server", hint="register the query first"
            )
        body = _statement(sql, language)
        request = Request("POST", "/v1/sql", json=body, headers={"Accept": ARROW}, repeatable=True)
        return read_answer(self._transport.send(request))

    def explain_once(self, sql: str, *, language: str = "sql") -> dict[str, Any]:
        request = Request("POST", "/v1/sql", json=_statement(f"EXPLAIN {sql}", language), repeatable=True)
        plan: dict[str, Any] = self._transport.send(request).json()["object"]
        return plan

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        return self._calls.feed(since, timeout)

    # Templates

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        options = {"sql": _sql_text(sql, "a query's SQL")}
        if name is not None:
            options["name"] = check_text(name, "a template's name")
        if label is not None:
            options["label"] = check_text(label, "a label's column")
        content = arrow_bytes(parameter_table(params))
        request = Request("POST", "/v1/templates", options, content=content, headers={"Content-Type": ARROW})
        return self._template(self._transport.send(request).json())

    def template(self, handle_or_name: str) -> QueryTemplate:
        return self._template(self._entry(handle_or_name))

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        return [with_datetimes(entry) for entry in pages(self._transport, "/v1/templates", "templates", owner=owner)]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        return with_datetimes(self._entry(handle_or_name))

    def _template(self, entry: dict[str, Any]) -> QueryTemplate:
        return QueryTemplate(self._calls, entry["id"], entry["name"], entry["sql"])

    def _entry(self, handle_or_name: str) -> Any:
        path = f"/v1/templates/{segment(check_text(handle_or_name, 'a template’s name'))}"
        return self._transport.get_json(path)

    # The pot

    def sql(self, text: str) -> Outcome:
        return run(self, self._calls, self._transport, _sql_text(text, "a statement"))

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        positions = list(position) if isinstance(position, list | tuple | set) else [position]
        seconds = check_timeout(timeout)
        waits = max(0.0, WAIT_SECONDS if seconds is None else seconds)
        if positions:
            self._transport.send(Request("GET", "/v1/wait", {"position": positions, "timeout": waits}, waits=waits))

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._transport.get_json("/v1/status")
        return status

    def close(self) -> None:
        """Close the connections; the server keeps running."""
        self._transport.close()

    def __enter__(self) -> Self:
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


def _peer_path(name: str) -> str:
    return f"/v1/peers/{segment(check_text(name, 'a peer’s name'))}"


def _statement(text: str, language: str) -> dict[str, str]:
    """The body of a statement, or of a query in another language."""
    return {"sql": text} if check_language(language) == "sql" else {"sql": text, "language": language}


def _sql_text(text: str, label: str) -> str:
    """SQL to send; empty text becomes a blank, so that the server's parser reports it, as for an embedded pot."""
    return check_text(text, label) or " "
