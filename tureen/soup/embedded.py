"""The embedded Tureen: a pot that is opened in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from tureen.arguments import (
    check_moment,
    check_name,
    check_path,
    check_schema,
    check_stream,
    check_text,
    check_timeout,
    skip_existing,
)
from tureen.errors import UnknownQuery, UnknownTable
from tureen.language import parse_duration
from tureen.language.text.statements import parse_statement
from tureen.pipeline.priority import check_nice
from tureen.pipeline.spark_settings import check_spark
from tureen.position import BEGINNING, Pushed
from tureen.pot.catalog import micros_now
from tureen.pot.queries import Registered
from tureen.pot.runs import rejected_rows
from tureen.pot.status import describe_query, describe_stream, pot_status
from tureen.pot.streams import create_stream, drop_stream, find_stream, list_streams
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.embedded_templates import TemplateCalls
from tureen.soup.feed import ChangeBatch, ChangeReader
from tureen.soup.open_pot import NO_ENGINE, OpenPot
from tureen.soup.pushing import push_rows
from tureen.soup.standing import StandingQuery
from tureen.soup.statement_runner import Outcome, run_statement
from tureen.soup.waiting import Positions, follow, wait_for
from tureen.window import from_micros, to_micros


def open(  # noqa: A001 - the name people expect
    path: str | os.PathLike[str],
    *,
    mode: str = "auto",
    master: str = "local[*]",
    nice: int = 0,
    spark: Mapping[str, Any] | None = None,
    clock: Callable[[], int] = micros_now,
) -> Soup:
    """Open a pot: a directory, which is created if it does not exist.

    `mode="auto"` opens the pot for reading, and for writing at the first call that needs it; `"write"` acquires the
    lease and starts Spark immediately, in the background; `"read"` never writes. `nice` lowers the scheduling priority
    of Spark, as the command `nice` does. `spark` is configuration of Spark, such as the packages of a source; if this
    process already has a Spark session, that session must have the same settings. `clock` returns NOW in microseconds,
    for tests.
    """
    settings = check_spark(spark)
    return Soup(check_path(path), mode=mode, master=master, nice=check_nice(nice), clock=clock, spark=settings)


class Soup(TemplateCalls):
    """An open pot: its streams, tables, standing queries and templates."""

    def __init__(
        self,
        path: Path,
        *,
        mode: str,
        master: str,
        nice: int,
        clock: Callable[[], int],
        spark: Mapping[str, str] | None = None,
    ) -> None:
        """Open the pot; see `open`."""
        self.path = path.absolute()
        self._clock = clock
        self._pot = OpenPot(self.path, mode=mode, master=master, nice=nice, clock=clock, spark=spark)
        self._owner: str | None = None

    def acting_for(self, principal: str) -> Soup:
        """The same pot, used by a principal.

        A principal owns the queries that it registers, and can find, follow and unregister only these. It also sees
        queries that others share in lists, and can invoke and follow them by handle. Streams and tables have no owner.
        """
        soup = copy(self)
        soup._owner = check_name(principal, "principal")
        return soup

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
        """Create a stream, fed by `push` or by a Spark source; `if_not_exists` keeps an existing one unchanged."""
        name = check_stream(name, time, retain, clock, source)
        parsed = check_schema(schema, time)
        retention = None if retain is None else parse_duration(retain)
        engine = self._pot.engine()
        with skip_existing(name, if_not_exists, self.streams), self._pot.catalog.write() as tx:
            create_stream(tx, name, parsed, clock=clock, retain=retention, source=source)
        engine.notice()

    def drop_stream(self, name: str) -> None:
        """Remove a stream, its tuples, and the queries over it."""
        check_text(name, "a stream's name")
        engine = self._pot.engine()
        with self._pot.catalog.write() as tx:
            drop_stream(tx, find_stream(tx, name))
        engine.notice()

    def streams(self) -> list[dict[str, Any]]:
        """The streams, in order of creation."""
        if not self._pot.exists():
            return []
        errors = self._pot.source_errors()
        with self._pot.catalog.read() as tx:
            return [describe_stream(stream, errors.get(stream.id)) for stream in list_streams(tx)]

    def push(self, stream: str, rows: Any, *, key: str | None = None) -> Pushed:
        """Add rows to a stream and return their position, which has the attribute `added`; they are durable then.

        Either all rows are stored or none. With a `key`, repeating the push changes nothing, and `added` is 0.
        """
        engine = self._pot.engine()
        if key is not None:
            check_text(key, "an idempotency key")
        return push_rows(engine.inbox, self._pot.components.streams.find(stream), rows, key, self._clock())

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that could not be stored, with the reason."""
        check_text(stream, "a stream's name")
        with self._pot.catalog.read() as tx:
            rows = rejected_rows(tx, find_stream(tx, stream).id)
        return [{**row, "rejected_at": from_micros(row["rejected_at"])} for row in rows]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a table: dimension data without time; `if_not_exists` keeps an existing one unchanged.

        `rows` is a list of dicts, an Arrow table or batch, a pandas, polars or Spark DataFrame, or the path of a `.csv`
        or `.parquet` file. Without a `schema`, it is derived from the types of the rows.
        """
        tables = self._pot.writable().tables
        with skip_existing(name, if_not_exists, tables.describe):
            tables.create(name, schema, rows)

    def replace_table(self, name: str, rows: Any) -> None:
        """Replace all rows of a table atomically."""
        self._pot.writable().tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        """Remove a table."""
        self._pot.writable().tables.drop(name)

    def table(self, name: str) -> pa.Table:
        """All rows of a table."""
        check_text(name, "a table's name")
        if not self._pot.exists():
            raise UnknownTable(f"there is no table named '{name}'")
        return self._pot.components.tables.read(name)

    def tables(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""
        return self._pot.components.tables.describe() if self._pot.exists() else []

    # Queries

    def register(self, sql: str, *, name: str | None = None, materialize: bool | str = "auto") -> StandingQuery:
        """Register a standing query; its answers also include tuples that arrived before.

        `materialize=True` matches arriving tuples with the query; `False` evaluates the query from the index when it is
        invoked; `"auto"` chooses by cost and by how often the query is invoked.
        """
        # The engine notices new queries by polling, within some tenths of a second.
        self._pot.engine()
        handle = self._pot.components.registry.register(sql, name, materialize, self._owner)
        return StandingQuery(self, handle, name, sql)

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""
        if not self._pot.exists():
            raise UnknownQuery(f"there is no query '{handle_or_name}'")
        query = self.registered(handle_or_name)
        return StandingQuery(self, query.id, query.name, query.sql, label=query.label)

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        """The standing queries, in order of registration, without those of templates (see `QueryTemplate`).

        `limit` is the maximum number of queries; pass the `place` of the last one as `after` for the next page. `owner`
        selects the queries of a principal, or of all principals with "*".
        """
        queries = self.registered_queries(after=after, limit=limit, owner=owner)
        return [StandingQuery(self, query.id, query.name, query.sql, query.cursor) for query in queries]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        """Descriptions of the queries that `queries` returns."""
        return [describe_query(query) for query in self.registered_queries(after=after, limit=limit, owner=owner)]

    def registered_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[Registered]:
        """The catalog entries of the queries that `queries` returns."""
        listed_owner = self._listed_owner(owner)
        if not self._pot.exists():
            return []
        return self._pot.components.registry.page(listed_owner, after, limit, with_shared=owner is None)

    def share(self, handle: str, shared: bool = True) -> None:
        """Allow other principals to invoke and follow a query or template by its handle; `shared=False` revokes it."""
        self._pot.writable().registry.share(handle, shared, self._owner)

    def unregister(self, handle: str) -> None:
        """Unregister the query of that handle."""
        check_text(handle, "a handle")
        self._pot.engine()
        self._pot.components.registry.unregister(handle, self._owner)

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke the query of that handle; see `StandingQuery.invoke`."""
        self._check_visible(handle)
        check_timeout(timeout)
        moment = check_moment(now)
        if wait_for is not None:
            self.wait(wait_for, timeout=timeout)
        return self._pot.components.invoker.invoke(handle, None if moment is None else to_micros(moment))

    def is_light(self, handle: str) -> bool:
        """Whether an invocation only looks up rows, so that it takes less time than dispatching it to a thread."""
        self._check_visible(handle)
        return self._pot.components.invoker.is_light(handle)

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """The answer of an unregistered query."""
        moment = check_moment(now)
        return self._pot.components.invoker.answer_once(
            check_text(sql, "a query's SQL"), None if moment is None else to_micros(moment)
        )

    def changes(self, handle: str, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer of that handle; see `StandingQuery.changes`."""
        return self._follow(lambda at: self.change_reader.query(handle, at), since, timeout)

    def template_changes(self, handle: str, *, since: str | None, timeout: float | None) -> Iterator[Change]:
        """The rows that join the answers of a template's queries; see `QueryTemplate.changes`."""
        return self._follow(lambda at: self.change_reader.template(handle, at), since, timeout)

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer of any query or template that can be followed.

        The positions are those of the feed: resuming from one neither misses nor repeats a row.
        """
        return self._follow(self.change_reader.all, since, timeout)

    @property
    def change_reader(self) -> ChangeReader:
        """Reads the changes since a position, without waiting."""
        pot = self._pot.components
        return ChangeReader(pot.catalog, pot.invoker, pot.templates, self._owner, self._check_visible)

    def _follow(
        self, read: Callable[[str | None], ChangeBatch], since: str | None, timeout: float | None
    ) -> Iterator[Change]:
        """The changes since a position; the first batch is read now, so that the call itself raises errors."""
        seconds = check_timeout(timeout)
        batches = follow(self._pot.catalog, read(since), read, seconds, self._pot.ensure_fed)
        return (change for batch in batches for change in batch)

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query of that handle is answered."""
        self._check_visible(handle)
        return self._pot.components.invoker.explain(handle)

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How an unregistered query would be answered."""
        return self._pot.components.invoker.explain_once(check_text(sql, "a query's SQL"))

    def registered(self, handle: str) -> Registered:
        """The catalog entry of a query."""
        return self._pot.components.registry.find(handle, self._owner)

    def _check_visible(self, handle: str) -> None:
        """Raise `UnknownQuery` also for a query of another owner that is not shared."""
        check_text(handle, "a handle")
        if self._owner is not None:
            invoker = self._pot.components.invoker
            invoker.view.refresh()
            try:
                query = invoker.view.query(handle)
            except UnknownQuery:
                # Without the hint, which may contain names of other owners.
                raise UnknownQuery(f"there is no query '{handle}'") from None
            if query.id != handle or (query.owner != self._owner and not query.shared):
                raise UnknownQuery(f"there is no query '{handle}'")

    def sql(self, text: str) -> Outcome:
        """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT (docs/statements.md)."""
        return run_statement(self, parse_statement(check_text(text, "a statement")))

    # The pot

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        """Wait until a position, or each of several positions, is reached."""
        seconds = check_timeout(timeout)
        wait_for(
            self._pot.catalog,
            position,
            seconds,
            ensure_fed=self._pot.ensure_fed,
            delay_reason=self._pot.delay_reason,
        )

    def status(self) -> dict[str, Any]:
        """The state of the pot: rows, runs, tail, debts, queries, position, lag."""
        if not self._pot.exists():
            empty = {"streams": {}, "tables": {}, "queries": 0, "clauses": 0, "damaged": [], "position": BEGINNING}
            return {**empty, "engine": "none", "error": None, "version": version("tureen")}
        engine = self._pot.running
        ends = None if engine is None else engine.inbox.end
        with self._pot.catalog.read() as tx:
            status = pot_status(tx, ends, self._pot.source_errors())
        return {**status, "engine": self._pot.state(), "error": self._pot.engine_error(), "version": version("tureen")}

    def trouble(self) -> str | None:
        """Why pushed rows do not reach answers at the moment; None if they do."""
        return self._pot.delay_reason() or (NO_ENGINE if self._pot.state() == "none" else None)

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each of Spark's streaming queries: its seconds and its rows."""
        engine = self._pot.running
        return [] if engine is None else engine.batches()

    def start(self, *, wait: float | None = None) -> None:
        """Acquire the lease and start Spark; with `wait`, return when it runs or after that number of seconds."""
        seconds = check_timeout(wait)
        engine = self._pot.engine()
        if seconds is not None:
            engine.wait_ready(min(seconds, threading.TIMEOUT_MAX))

    def settle(self) -> None:
        """Pay all debts and merge all runs that can be merged now, instead of in the background."""
        self._pot.engine().settle()

    def close(self) -> None:
        """Stop the engine and close the pot."""
        self._pot.close()

    def __enter__(self) -> Soup:
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
