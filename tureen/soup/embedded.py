"""The embedded Tureen: a pot that is opened in this process."""

# ruff: noqa: D102 - `AnySoup` documents the methods

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tureen.arguments import (
    check_clock,
    check_format,
    check_item,
    check_language,
    check_moment,
    check_name,
    check_schema,
    check_stream,
    check_text,
    check_timeout,
    has_headers,
    skip_existing,
)
from tureen.closed.declaring import check_rules
from tureen.deferred_import import DeferredModule
from tureen.errors import UnknownQuery, UnknownStream, UnknownTable
from tureen.functions.function_source import function_of
from tureen.language import parse_duration, parse_retention
from tureen.language.text.statements import parse_statement
from tureen.position import Pushed
from tureen.pot.peers import Peer
from tureen.pot.pending_rejections import all_rejected
from tureen.pot.registered import LOCAL
from tureen.pot.status import describe_query, describe_template
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.embedded_calls import EmbeddedCalls
from tureen.soup.interface import AnyPunctuation, AnySoup, Outcome, Positions
from tureen.soup.open_pot import OpenPot
from tureen.soup.pushing import check_pushable, push_rows
from tureen.soup.soup_status import described_streams, empty_status, soup_status
from tureen.soup.standing import QueryTemplate, StandingQuery, standing_query
from tureen.soup.statement_runner import run_statement
from tureen.soup.stream_derivation import derive_stream
from tureen.soup.xml_pushing import BATCH_ROWS, push_xml
from tureen.window import from_micros, to_micros

if TYPE_CHECKING:
    from tureen.federation import listing
else:
    listing = DeferredModule("tureen.federation.listing")


class Soup(AnySoup):
    """An open pot: its streams, tables, standing queries and templates. Its directory is `path`."""

    def __init__(self, pot: OpenPot, owner: str | None = None) -> None:
        """Use an open pot, as the owner of its directory or as a principal; see `open` and `acting_for`."""
        self.path = pot.path
        self._pot, self._owner = pot, owner
        self._calls = EmbeddedCalls(pot, owner)

    def acting_for(self, principal: str) -> Self:
        """The same pot, used by a principal.

        A principal owns the queries that it registers, and can find, follow and unregister only these. It also sees
        queries that others share in lists, and can invoke and follow them by handle. Streams and tables have no owner.
        """
        return type(self)(self._pot, check_name(principal, "principal"))

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
        name = check_stream(name, schema, time, retain, clock, source, query)
        retention = None if retain is None else parse_retention(retain)
        parsed = None if schema is None else check_schema(schema, time)
        delay = None if lateness is None else parse_duration(check_text(lateness, "a lateness"))
        rules = check_rules(parsed, unique, delay, punctuate, key, has_headers=has_headers(source))
        path = None if item is None else check_item(item, parsed)
        clock = check_clock(parsed, clock)
        engine = self._pot.engine()
        with skip_existing(name, if_not_exists, self.streams):
            if query is not None:
                derive_stream(
                    self._pot.catalog,
                    name,
                    query,
                    time=time,
                    retain=retention,
                    clock=clock,
                    item=path,
                    remote=self._pot.components.registry.remote,
                )
            else:
                assert parsed is not None
                with self._pot.catalog.write() as tx:
                    create_stream(
                        tx,
                        name,
                        parsed,
                        clock=clock or "wall",
                        retain=retention,
                        source=source,
                        rules=rules,
                        item=path,
                    )
        engine.notice()

    def drop_stream(self, name: str) -> None:
        check_text(name, "a stream's name")
        engine = self._pot.engine()
        with self._pot.catalog.write() as tx:
            drop_stream(tx, find_stream(tx, name))
        engine.notice()

    def streams(self) -> list[dict[str, Any]]:
        return described_streams(self._pot) if self._pot.exists() else []

    def push(
        self,
        stream: str,
        rows: Any,
        *,
        key: str | None = None,
        punctuations: Iterable[AnyPunctuation] | None = None,
        format: str | None = None,  # noqa: A002 - the name people expect
        batch: int = BATCH_ROWS,
    ) -> Pushed:
        is_xml = check_format(format)
        engine = self._pot.engine()
        if key is not None:
            check_text(key, "an idempotency key")
        target = self._pot.components.streams.find(stream)
        if not is_xml:
            return push_rows(engine.inbox, target, rows, key, self._pot.clock(), punctuations or ())
        check_pushable(target.stream)
        schema, item = target.stream.schema, target.stream.item
        return push_xml(partial(self.push, target.stream.name), schema, item, rows, key, batch, punctuations or ())

    def punctuate(self, stream: str, where: AnyPunctuation, *, key: str | None = None) -> Pushed:
        check_text(stream, "a stream's name")
        self._pot.engine()
        check_pushable(self._pot.components.streams.find(stream).stream, "punctuate")
        return self.push(stream, [], key=key, punctuations=[where])

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        rows = all_rejected(self._pot.catalog, check_text(stream, "a stream's name"))
        return [{**row, "rejected_at": from_micros(row["rejected_at"])} for row in rows]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        tables = self._pot.writable().tables
        with skip_existing(name, if_not_exists, tables.describe):
            tables.create(name, schema, rows)

    def replace_table(self, name: str, rows: Any) -> None:
        self._pot.writable().tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        self._pot.writable().tables.drop(name)

    def table(self, name: str) -> pa.Table:
        check_text(name, "a table's name")
        if not self._pot.exists():
            raise UnknownTable(f"there is no table named '{name}'")
        return self._pot.components.tables.read(name)

    def tables(self) -> list[dict[str, Any]]:
        return self._pot.components.tables.describe() if self._pot.exists() else []

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
        self._pot.writable().functions.create(new, self._owner or LOCAL, replace=replace)

    def drop_function(self, name: str) -> None:
        self._pot.writable().functions.drop(check_text(name, "a function's name"))

    def functions(self) -> list[dict[str, Any]]:
        return self._pot.components.functions.describe() if self._pot.exists() else []

    # Peers

    def peers(self) -> list[dict[str, Any]]:
        return listing.describe_peers(self._pot.federated())

    def network(self) -> dict[str, Any]:
        self._pot.federated()
        assert self._pot.network is not None
        return self._pot.network.describe()

    def add_peer(self, name: str, url: str, *, token: str | None = None, ca: str | None = None) -> None:
        for value, subject in ((token, "a token"), (ca, "a path")):
            if value is not None:
                check_text(value, subject)
        peer = Peer(check_name(name, "peer"), check_text(url, "the address of a server"), token, ca)
        self._pot.federated().peering.add(peer)

    def remove_peer(self, name: str) -> None:
        self._pot.federated().peering.remove(check_text(name, "a peer's name"))

    def share_stream(self, peer: str, stream: str) -> None:
        federation = self._pot.federated()
        name, peer = check_text(stream, "a stream's name"), check_name(peer, "peer")
        try:
            federation.peering.share(peer, name)
        except UnknownStream:
            # A stream of another server is passed on.
            if federation.find_remote(name) is None:
                raise
            federation.peering.share(peer, name)

    def unshare_stream(self, peer: str, stream: str) -> None:
        self._pot.federated().peering.unshare(check_text(peer, "a peer's name"), check_text(stream, "a stream's name"))

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
        check_language(language)
        # The engine notices new queries by polling, within some tenths of a second.
        self._pot.engine()
        handle = self._pot.components.registry.register(sql, name, materialize, self._owner, plan, jit, language)
        return StandingQuery(self._calls, handle, name, sql)

    def query(self, handle_or_name: str) -> StandingQuery:
        if not self._pot.exists():
            raise UnknownQuery(f"there is no query '{handle_or_name}'")
        return standing_query(self._calls, self._calls.registered(handle_or_name))

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        queries = self._calls.registered_queries(after, limit, owner)
        return [StandingQuery(self._calls, query.id, query.name, query.sql, query.cursor) for query in queries]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        return [describe_query(query) for query in self._calls.registered_queries(after, limit, owner)]

    def share(self, handle: str, shared: bool = True) -> None:
        self._pot.writable().registry.share(handle, shared, self._owner)

    def answer_once(self, sql: str, *, now: datetime | None = None, language: str = "sql") -> Answer:
        moment = check_moment(now)
        return self._pot.components.invoker.answer_once(
            check_text(sql, "a query's text"), None if moment is None else to_micros(moment), check_language(language)
        )

    def explain_once(self, sql: str, *, language: str = "sql") -> dict[str, Any]:
        return self._pot.components.invoker.explain_once(check_text(sql, "a query's text"), check_language(language))

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        return self._calls.feed(since, timeout)

    # Templates

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        handle = self._pot.writable().templates.register(sql, params, name, self._owner, label)
        return QueryTemplate(self._calls, handle, name, sql)

    def template(self, handle_or_name: str) -> QueryTemplate:
        template = self._pot.components.templates.find(handle_or_name, self._owner)
        return QueryTemplate(self._calls, template.id, template.name, template.sql)

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        listed_owner = self._calls.listed_owner(owner)
        if not self._pot.exists():
            return []
        counted = self._pot.components.templates.describe(listed_owner, with_shared=owner is None)
        return [describe_template(template, queries) for template, queries in counted]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        templates = self._pot.components.templates
        template = templates.find(handle_or_name, self._owner)
        return describe_template(template, len(templates.members(template.id, self._owner)))

    # The pot

    def sql(self, text: str) -> Outcome:
        return run_statement(self, parse_statement(check_text(text, "a statement")))

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        self._pot.wait(position, check_timeout(timeout))

    def status(self) -> dict[str, Any]:
        return soup_status(self._pot) if self._pot.exists() else empty_status()

    def start(self, *, wait: float | None = None) -> None:
        """Acquire the lease and start Spark; with `wait`, return when it runs or after that number of seconds."""
        seconds = check_timeout(wait)
        engine = self._pot.engine()
        engine.start_spark()
        if seconds is not None:
            engine.wait_ready(min(seconds, threading.TIMEOUT_MAX))

    def settle(self) -> None:
        """Wait until all pushed rows are in runs, then pay all debts and merge all runs that can be merged now."""
        self._pot.engine().settle()

    def close(self) -> None:
        """Stop the engine and close the pot."""
        self._pot.close()

    def __enter__(self) -> Self:
        """Return this pot, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pot."""
        self.close()

    def __repr__(self) -> str:
        """The class and the path."""
        return f"<tureen.Soup {str(self.path)!r}>"
