"""The embedded Tureen: one directory, in this process."""

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
    """Open a pot: a directory that is made if it is not there.

    `mode="auto"` opens for reading, and for writing at the first call that needs it; `"write"` takes the pot and starts
    Spark at once, in the background; `"read"` never does. `nice` lets Spark stand back for whoever else wants the
    processor, as the command `nice` does. `spark` are settings of Spark's own, such as the packages of a source; they
    are for a session that this process starts, and one that runs already must have them. `clock` gives NOW in
    microseconds, for tests.
    """
    settings = check_spark(spark)
    return Soup(check_path(path), mode=mode, master=master, nice=check_nice(nice), clock=clock, spark=settings)


class Soup(TemplateCalls):
    """A pot in use: streams in, standing queries over them, answers out."""

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
        """The same pot as one of several people sees it.

        They register under their own names, and find, follow and unregister only what is theirs; what others share is
        listed too, and they may invoke and follow it by its handle. Streams and tables are everybody's.
        """
        theirs = copy(self)
        theirs._owner = check_name(principal, "principal")
        return theirs

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
        name = check_stream(name, time, retain, clock, source)
        parsed = check_schema(schema, time)
        kept = None if retain is None else parse_duration(retain)
        engine = self._pot.engine()
        with skip_existing(name, if_not_exists, self.streams), self._pot.catalog.write() as tx:
            create_stream(tx, name, parsed, clock=clock, retain=kept, source=source)
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
        if not self._pot.is_there():
            return []
        errors = self._pot.source_errors()
        with self._pot.catalog.read() as tx:
            return [describe_stream(stream, errors.get(stream.id)) for stream in list_streams(tx)]

    def push(self, stream: str, rows: Any, *, key: str | None = None) -> Pushed:
        """Add rows to a stream; they are durable when this returns. Returns their position, with `added` beside it.

        All rows are taken or none. With a `key`, pushing the same again changes nothing: `added` is 0 then.
        """
        engine = self._pot.engine()
        if key is not None:
            check_text(key, "an idempotency key")
        return push_rows(engine.inbox, self._pot.parts.streams.find(stream), rows, key, self._clock())

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that could not be taken, with the reason."""
        check_text(stream, "a stream's name")
        with self._pot.catalog.read() as tx:
            found = rejected_rows(tx, find_stream(tx, stream).id)
        return [{**one, "rejected_at": from_micros(one["rejected_at"])} for one in found]

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Make a table: dimension data, without time; `if_not_exists` leaves one of that name as it is.

        `rows` may be a list of dicts, an Arrow table or batch, a pandas, polars or Spark DataFrame, or the path of a
        `.csv` or `.parquet` file. Without a `schema`, rows that carry types give one.
        """
        tables = self._pot.own().tables
        with skip_existing(name, if_not_exists, tables.describe):
            tables.create(name, schema, rows)

    def replace_table(self, name: str, rows: Any) -> None:
        """Put new rows in the place of all that a table holds, in one step: nobody sees a part of them."""
        self._pot.own().tables.replace(name, rows)

    def drop_table(self, name: str) -> None:
        """Remove a table."""
        self._pot.own().tables.drop(name)

    def table(self, name: str) -> pa.Table:
        """All rows of a table."""
        check_text(name, "a table's name")
        if not self._pot.is_there():
            raise UnknownTable(f"there is no table named '{name}'")
        return self._pot.parts.tables.read(name)

    def tables(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""
        return self._pot.parts.tables.describe() if self._pot.is_there() else []

    # Queries

    def register(self, sql: str, *, name: str | None = None, materialize: bool | str = "auto") -> StandingQuery:
        """Let a query stand; its handle answers from now on, over what came before as well.

        `materialize=True` keeps its results ready at arrival; `False` evaluates it from the index when it is invoked;
        `"auto"` does the one or the other, by what it costs and how often it is invoked.
        """
        # The engine sees by itself that there is something to compile, some tenths of a second later.
        self._pot.engine()
        handle = self._pot.parts.registry.register(sql, name, materialize, self._owner)
        return StandingQuery(self, handle, name, sql)

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""
        if not self._pot.is_there():
            raise UnknownQuery(f"there is no query '{handle_or_name}'")
        found = self.registered(handle_or_name)
        return StandingQuery(self, found.id, found.name, found.sql, label=found.label)

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        """The standing queries, in order of registration; those of templates are in their `QueryTemplate`.

        With a `limit`, so many at most; the `place` of the last of them, as `after`, gives the next. With an `owner`,
        those of that principal; of all principals with "*".
        """
        found = self.registered_queries(after=after, limit=limit, owner=owner)
        return [StandingQuery(self, one.id, one.name, one.sql, one.cursor) for one in found]

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        """The same as the catalog has them now."""
        return [describe_query(one) for one in self.registered_queries(after=after, limit=limit, owner=owner)]

    def registered_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[Registered]:
        """The same with all that the catalog knows of them."""
        whose = self._whose(owner)
        if not self._pot.is_there():
            return []
        return self._pot.parts.registry.page(whose, after, limit, with_shared=owner is None)

    def share(self, handle: str, shared: bool = True) -> None:
        """Let others invoke and follow a query, or all of a template's, by its handle; or no longer."""
        self._pot.own().registry.share(handle, shared, self._owner)

    def unregister(self, handle: str) -> None:
        """Let the query of that handle stand no longer."""
        check_text(handle, "a handle")
        self._pot.engine()
        self._pot.parts.registry.unregister(handle, self._owner)

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke the query of that handle; see `StandingQuery.invoke`."""
        self._check_visible(handle)
        check_timeout(timeout)
        moment = check_moment(now)
        if wait_for is not None:
            self.wait(wait_for, timeout=timeout)
        return self._pot.parts.invoker.invoke(handle, None if moment is None else to_micros(moment))

    def is_light(self, handle: str) -> bool:
        """Whether invoking that handle only looks rows up, so that it takes less than going to a thread does."""
        self._check_visible(handle)
        return self._pot.parts.invoker.is_light(handle)

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """The answer of a query that does not stand."""
        moment = check_moment(now)
        return self._pot.parts.invoker.answer_once(
            check_text(sql, "a query's SQL"), None if moment is None else to_micros(moment)
        )

    def changes(self, handle: str, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The rows that join the answer of that handle; see `StandingQuery.changes`."""
        return self._follow(lambda at: self.looks.query(handle, at), since, timeout)

    def template_changes(self, handle: str, *, since: str | None, timeout: float | None) -> Iterator[Change]:
        """The rows that join the answers of a template's queries; see `QueryTemplate.changes`."""
        return self._follow(lambda at: self.looks.template(handle, at), since, timeout)

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """Every row that joins the answer of any query or template that can be followed, in one go.

        A change's position is the feed's own: going on from there misses nothing and repeats nothing.
        """
        return self._follow(self.looks.all, since, timeout)

    @property
    def looks(self) -> ChangeReader:
        """What joined answers since a position, without waiting."""
        parts = self._pot.parts
        return ChangeReader(parts.catalog, parts.invoker, parts.templates, self._owner, self._check_visible)

    def _follow(
        self, read: Callable[[str | None], ChangeBatch], since: str | None, timeout: float | None
    ) -> Iterator[Change]:
        """The changes from a position on; the first batch is read now, so that errors are raised at the call."""
        seconds = check_timeout(timeout)
        batches = follow(self._pot.catalog, read(since), read, seconds, self._pot.help_along)
        return (change for batch in batches for change in batch)

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query of that handle is answered."""
        self._check_visible(handle)
        return self._pot.parts.invoker.explain(handle)

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How a query that does not stand would be answered."""
        return self._pot.parts.invoker.explain_once(check_text(sql, "a query's SQL"))

    def registered(self, handle: str) -> Registered:
        """The query of that handle as the catalog has it now."""
        return self._pot.parts.registry.find(handle, self._owner)

    def _check_visible(self, handle: str) -> None:
        """Refuse, as if it were not there, a query that is another's and not shared."""
        check_text(handle, "a handle")
        if self._owner is not None:
            invoker = self._pot.parts.invoker
            invoker.view.refresh()
            try:
                found = invoker.view.query(handle)
            except UnknownQuery:
                # Without its hint, which names what others have.
                raise UnknownQuery(f"there is no query '{handle}'") from None
            if found.id != handle or (found.owner != self._owner and not found.shared):
                raise UnknownQuery(f"there is no query '{handle}'")

    def sql(self, text: str) -> Outcome:
        """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT (docs/statements.md)."""
        return run_statement(self, parse_statement(check_text(text, "a statement")))

    # The pot

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        """Wait until a push is in, or until what an answer reflects is here; all of them if several are given."""
        seconds = check_timeout(timeout)
        wait_for(self._pot.catalog, position, seconds, help_along=self._pot.help_along, trouble=self._pot.waits_for)

    def status(self) -> dict[str, Any]:
        """What is there: rows, runs, tail, debts, queries, position, lag."""
        if not self._pot.is_there():
            empty = {"streams": {}, "tables": {}, "queries": 0, "clauses": 0, "damaged": [], "position": BEGINNING}
            return {**empty, "engine": "none", "error": None, "version": version("tureen")}
        engine = self._pot.running
        ends = None if engine is None else engine.inbox.end
        with self._pot.catalog.read() as tx:
            found = pot_status(tx, ends, self._pot.source_errors())
        return {**found, "engine": self._pot.state(), "error": self._pot.trouble(), "version": version("tureen")}

    def trouble(self) -> str | None:
        """Why rows are not taken up and answered at the moment, or None where they are."""
        return self._pot.waits_for() or (NO_ENGINE if self._pot.state() == "none" else None)

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each of Spark's streaming queries: its seconds and its rows."""
        engine = self._pot.running
        return [] if engine is None else engine.batches()

    def start(self, *, wait: float | None = None) -> None:
        """Take the pot for writing and start Spark; with `wait`, be back when it runs or after so many seconds."""
        seconds = check_timeout(wait)
        engine = self._pot.engine()
        if seconds is not None:
            engine.wait_ready(min(seconds, threading.TIMEOUT_MAX))

    def settle(self) -> None:
        """Pay all debts and merge what can be merged, now instead of in the background."""
        self._pot.engine().settle()

    def close(self) -> None:
        """Stop what runs for this pot and let go of it."""
        self._pot.close()

    def __enter__(self) -> Soup:
        """Use the pot in a block that closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pot."""
        self.close()

    def __repr__(self) -> str:
        """Say which pot it is."""
        return f"<tureen.Soup {str(self.path)!r}>"
