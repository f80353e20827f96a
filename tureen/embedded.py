"""The embedded Tureen: one directory, in this process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from tureen.arguments import check_name, check_source, check_text
from tureen.errors import (
    EngineFailed,
    InvalidRows,
    InvalidSchema,
    PotLocked,
    TureenError,
    UnknownQuery,
    WaitTimeout,
)
from tureen.language import bind_query, parse_duration
from tureen.pipeline.engine import Engine
from tureen.pot.catalog import Catalog, current_seq, exists, micros_now, take_seq
from tureen.pot.groups import GroupCommit
from tureen.pot.log import Entry
from tureen.pot.position import Position
from tureen.pot.queries import (
    Registered,
    Registration,
    find_query,
    list_queries,
    register_together,
    unregister,
)
from tureen.pot.runs import rejected_rows
from tureen.pot.status import describe_stream, has_come_to, pot_status
from tureen.pot.streams import Stream, create_stream, drop_stream, find_stream, list_streams
from tureen.results.answer import Answer
from tureen.results.invoke import Invoker
from tureen.schema import Schema
from tureen.standing import StandingQuery
from tureen.stems.intake import content_digest, to_batch
from tureen.window import from_micros, to_micros

WAIT_SECONDS = 60.0
"""How long `wait_for` waits if nothing else is said."""

MAX_PUSH_BYTES = 1 << 30
"""The most bytes of one push."""

MODES = ("auto", "read", "write")


def open(  # noqa: A001 - the name people expect
    path: str | os.PathLike[str],
    *,
    mode: str = "auto",
    master: str = "local[*]",
    clock: Callable[[], int] = micros_now,
) -> Soup:
    """Open a pot: a directory that is made if it is not there.

    `mode="auto"` opens for reading, and for writing at the first call that needs it; `"write"` takes the pot and starts
    Spark at once, in the background; `"read"` never does. `clock` gives NOW in microseconds, for tests.
    """
    return Soup(Path(path), mode=mode, master=master, clock=clock)


@dataclass(frozen=True)
class _Named:
    """A stream, and the last commit when it was looked up."""

    stream: Stream
    seq: int

    @property
    def described(self) -> tuple[str, Schema]:
        return self.stream.name, self.stream.schema


class Soup:
    """A pot in use: streams in, standing queries over them, answers out."""

    def __init__(self, path: Path, *, mode: str, master: str, clock: Callable[[], int]) -> None:
        """Open the pot; see `open`."""
        if mode not in MODES:
            raise TureenError(f"unknown mode '{mode}'", hint=f"one of {', '.join(MODES)}")
        self.path = path.absolute()
        self._mode, self._master, self._clock = mode, master, clock
        self._lock = threading.RLock()
        self._closed = False
        self._engine: Engine | None = None
        self._opened: tuple[Catalog, Invoker] | None = None
        self._streams_token = -1
        self._streams: dict[str, _Named] = {}
        self._registrations: GroupCommit[Registration, str] = GroupCommit(
            lambda wanted: register_together(self._catalog, wanted)
        )
        if exists(self.path):
            self._open_catalog(create=False)
        if mode == "write":
            self._write()

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
    ) -> None:
        """Make a stream, fed by `push` or by an outside Spark source."""
        check_name(name, "stream")
        if clock not in ("wall", "stream"):
            raise InvalidSchema(f"unknown clock '{clock}'", hint="'wall', or 'stream' for replays")
        check_source(source)
        if not isinstance(schema, str | Schema):
            raise InvalidSchema(f"the schema came as {type(schema).__name__}", hint='as in "sym STRING, price DOUBLE"')
        for text in (time, retain):
            if text is not None:
                check_text(text, "a time column or a retention")
        parsed = (
            Schema.parse(schema, time)
            if isinstance(schema, str)
            else Schema(schema.columns, time or schema.time).checked()
        )
        kept = None if retain is None else parse_duration(retain)
        engine = self._write()
        with self._catalog.write() as tx:
            create_stream(tx, name, parsed, clock=clock, retain=kept, source=source)
        engine.notice()

    def drop_stream(self, name: str) -> None:
        """Remove a stream, its tuples, and the queries over it."""
        check_text(name, "a stream's name")
        engine = self._write()
        with self._catalog.write() as tx:
            drop_stream(tx, find_stream(tx, name))
        engine.notice()

    def streams(self) -> list[dict[str, Any]]:
        """The streams, in order of creation."""
        if not self._is_there():
            return []
        with self._catalog.read() as tx:
            return [describe_stream(stream) for stream in list_streams(tx)]

    def push(self, stream: str, rows: Any, *, key: str | None = None) -> str:
        """Add rows to a stream; they are durable when this returns. Returns their position.

        All rows are taken or none. With a `key`, pushing the same again changes nothing.
        """
        engine = self._write()
        if key is not None:
            check_text(key, "an idempotency key")
        named = self._named(stream)
        target, seq = named.stream, named.seq
        if target.source is not None:
            raise TureenError(f"stream '{target.name}' is fed by its source", hint="push to another stream")
        batch = to_batch(target.schema, rows)
        if batch.num_rows == 0 and key is None:
            return str(Position(seq, target.id, engine.inbox.end(target.id)))
        payload = batch.serialize().to_pybytes()
        if len(payload) > MAX_PUSH_BYTES:
            raise InvalidRows(
                f"a push of {len(payload):,} bytes", hint=f"push at most {MAX_PUSH_BYTES:,} bytes at a time"
            )
        digest = content_digest(batch) if key else bytes(16)
        end = engine.inbox.push(target.id, Entry(payload, batch.num_rows, self._clock(), digest, key or ""))
        return str(Position(seq, target.id, end))

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that could not be taken, with the reason."""
        with self._catalog.read() as tx:
            found = rejected_rows(tx, find_stream(tx, stream).id)
        return [{**one, "rejected_at": from_micros(one["rejected_at"])} for one in found]

    # Queries

    def register(self, sql: str, *, name: str | None = None, materialize: bool = True) -> StandingQuery:
        """Let a query stand; its handle answers from now on, over what came before as well.

        `materialize=True` keeps its results ready at arrival; `False` evaluates it from the index when it is invoked.
        """
        engine = self._write()
        check_text(sql, "a query's SQL")
        if name is not None:
            check_name(name, "query")
        query = bind_query(sql, lambda wanted: self._named(wanted).described)
        stream = self._named(query.stream).stream
        handle = self._registrations.submit(Registration(sql, stream.id, query.clause, bool(materialize), name))
        engine.notice()
        return StandingQuery(self, handle, name, sql)

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""
        check_text(handle_or_name, "a query's name")
        if not self._is_there():
            raise UnknownQuery(f"there is no query '{handle_or_name}'")
        with self._catalog.read() as tx:
            found = find_query(tx, handle_or_name)
        return StandingQuery(self, found.id, found.name, found.sql)

    def queries(self) -> list[StandingQuery]:
        """All standing queries, in order of registration."""
        if not self._is_there():
            return []
        with self._catalog.read() as tx:
            return [StandingQuery(self, one.id, one.name, one.sql) for one in list_queries(tx)]

    def unregister(self, handle: str) -> None:
        """Let the query of that handle stand no longer."""
        engine = self._write()
        with self._catalog.write() as tx:
            take_seq(tx)
            unregister(tx, handle)
        engine.notice()

    def answer(self, handle: str, now: datetime | None, wait_for: str | None, timeout: float | None) -> Answer:
        """Invoke the query of that handle; see `StandingQuery.invoke`."""
        if wait_for is not None:
            self.wait(wait_for, timeout=timeout)
        if now is not None and not isinstance(now, datetime):
            raise TureenError(f"NOW came as {type(now).__name__}", hint="give a datetime; without a zone it means UTC")
        moment = None if now is None else to_micros(now)
        return self._invoker.invoke(handle, moment)

    def explain(self, handle: str) -> dict[str, Any]:
        """How the query of that handle is answered."""
        return self._invoker.explain(handle)

    def registered(self, handle: str) -> Registered:
        """The query of that handle as the catalog has it now."""
        with self._catalog.read() as tx:
            return find_query(tx, handle)

    # The pot

    def wait(self, position: str | list[str] | tuple[str, ...] | set[str], *, timeout: float | None = None) -> None:
        """Wait until a push is in, or until what an answer reflects is here; all of them if several are given."""
        wanted = list(position) if isinstance(position, list | tuple | set) else [position]
        deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)
        for one in wanted:
            self._wait(Position.parse(one), deadline)

    def _wait(self, position: Position, deadline: float) -> None:
        token, look_again = None, 0.0
        while True:
            found = self._catalog.token()
            # Also where nothing happens: whoever fed the pot may have died.
            if found != token or time.monotonic() > look_again:
                token, look_again = found, time.monotonic() + 1.0
                with self._catalog.read() as tx:
                    if has_come_to(tx, position):
                        return
                self._help_along()
            if time.monotonic() > deadline:
                raise WaitTimeout(
                    "what was waited for is not in yet",
                    detail=None if self._engine is None else self._engine.error,
                    hint="give a longer timeout; status() tells how far the pipeline is",
                )
            time.sleep(0.002)

    def _help_along(self) -> None:
        """Take the pot if nobody else feeds it: rows that a crash left in the inbox want an engine."""
        if self._engine is None and self._mode == "auto":
            try:
                self._write()
            except PotLocked:
                return

    def status(self) -> dict[str, Any]:
        """What is there: rows, runs, tail, debts, queries, position, lag."""
        if not self._is_there():
            nothing = {"streams": {}, "queries": 0, "clauses": 0, "position": str(Position(0))}
            return {**nothing, "engine": "none", "error": None}
        ends = None if self._engine is None else self._engine.inbox.end
        with self._catalog.read() as tx:
            found = pot_status(tx, ends)
        return {
            **found,
            "engine": self._engine_state(),
            "error": None if self._engine is None else self._engine.error,
        }

    def _engine_state(self) -> str:
        if self._engine is None:
            return "none"
        return "running" if self._engine.ready.is_set() else "starting"

    def start(self, *, wait: float | None = None) -> None:
        """Take the pot for writing and start Spark; with `wait`, be back when it runs or after so many seconds."""
        engine = self._write()
        if wait is not None:
            engine.wait_ready(wait)

    def settle(self) -> None:
        """Pay all debts and merge what can be merged, now instead of in the background."""
        self._write().settle()

    def close(self) -> None:
        """Stop what runs for this pot and let go of it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._engine is not None:
                self._engine.close()
                self._engine = None
            if self._opened is not None:
                self._opened[0].close()

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

    def _open_catalog(self, *, create: bool) -> None:
        catalog = Catalog(self.path, create=create)
        self._opened = (catalog, Invoker(catalog, self._clock))

    def _named(self, name: str) -> _Named:
        """The stream of that name, read again only when the catalog changed."""
        check_text(name, "a stream's name")
        token = self._catalog.token()
        if token != self._streams_token:
            self._streams_token, self._streams = token, {}
        kept = self._streams
        found = kept.get(name.lower())
        if found is None:
            with self._catalog.read() as tx:
                found = _Named(find_stream(tx, name), current_seq(tx))
            kept[name.lower()] = found
        return found

    def _is_there(self) -> bool:
        """Whether there is a pot yet; another process may have made it since it was opened."""
        return self._opened is not None or exists(self.path)

    @property
    def _catalog(self) -> Catalog:
        return self._both()[0]

    @property
    def _invoker(self) -> Invoker:
        return self._both()[1]

    def _both(self) -> tuple[Catalog, Invoker]:
        if self._closed:
            raise TureenError("this pot is closed")
        if self._opened is None:
            with self._lock:
                if self._opened is None:
                    self._open_catalog(create=False)
        assert self._opened is not None
        return self._opened

    def _write(self) -> Engine:
        """The engine, started if this is the first call that writes."""
        if self._engine is not None:
            return self._engine
        with self._lock:
            if self._closed:
                raise TureenError("this pot is closed")
            if self._mode == "read":
                raise TureenError("this pot is open for reading only", hint='open it with mode="write"')
            if self._engine is None:
                if self._opened is None:
                    try:
                        self.path.mkdir(parents=True, exist_ok=True)
                    except OSError as error:
                        raise EngineFailed(f"cannot make the pot in '{self.path}'", detail=str(error)) from error
                    self._open_catalog(create=True)
                self._engine = Engine(self.path, self._catalog, master=self._master, clock=self._clock)
            return self._engine
