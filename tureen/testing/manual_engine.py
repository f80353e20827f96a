"""The engine without Spark and threads: a test runs each step of the pipeline explicitly.

It calls the same functions as the sink's tasks, the sink's commit and the upkeep, so that a test can register a query
between a batch's pin and its commit, or invoke one while debts are owed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tureen.abstract_clock import with_instants
from tureen.closed.rules import NO_RULES, Rules
from tureen.functions.function_source import function_of
from tureen.language import parse_retention
from tureen.language.languages import bind_text
from tureen.language.text.called_functions import calls_function
from tureen.language.text.shapes import shape_of
from tureen.pipeline import upkeep
from tureen.pipeline.arrival import Arrivals
from tureen.pipeline.choosing import Chooser
from tureen.pipeline.compiling import compile_queries
from tureen.pipeline.debts import pay, pay_debts
from tureen.pipeline.deriving import Deriver
from tureen.pipeline.freeing import Freeing
from tureen.pipeline.inbox_sink import InboxMessage, InboxSink
from tureen.pipeline.join_keeping import JoinKeeper, run_in_process
from tureen.pipeline.key_indexing import KeyIndexer
from tureen.pipeline.pinning import pin
from tureen.pipeline.repair import repair
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.position import Pushed
from tureen.pot.catalog import Catalog, check_attempt, current_seq, micros_now, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.functions import add_function
from tureen.pot.heads import acknowledged_ends, log_directory, pushes_held
from tureen.pot.inbox import Inbox
from tureen.pot.kept_joins import new_join
from tureen.pot.log import refer
from tureen.pot.registered import LOCAL, Registration, Unregistration
from tureen.pot.registering import change_together
from tureen.pot.relations import Relations
from tureen.pot.reserved_ids import reserve_pending
from tureen.pot.runs import NewRun, insert_runs
from tureen.pot.stream_cache import CachedStream
from tureen.pot.streams import Stream, create_stream, find_stream, list_streams, stream_by_id
from tureen.results.answer import Answer
from tureen.results.invoke import Invoker
from tureen.schema import ARRIVAL, Schema
from tureen.soup.pushing import push_rows
from tureen.soup.stream_derivation import derive_stream
from tureen.stems.intake import to_batch
from tureen.window import to_micros


class ManualClock:
    """A clock that a test sets."""

    def __init__(self, moment: datetime) -> None:
        """Start at that moment."""
        self.moment = moment

    def __call__(self) -> int:
        """The moment in microseconds."""
        return to_micros(self.moment)


@dataclass(frozen=True)
class Batch:
    """A batch that is written but not committed."""

    stream_id: int
    attempt: str
    runs: list[NewRun]


@dataclass(frozen=True)
class TakenBatch:
    """Records of the inbox that are read but not committed."""

    sink: InboxSink
    message: InboxMessage


def change(catalog: Catalog, request: Registration | Unregistration) -> str:
    """Register or unregister a query in a commit of its own, and return its handle."""
    (outcome,) = change_together(catalog, [request])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class ManualEngine:
    """A pot whose pipeline runs only when a test calls its steps."""

    def __init__(self, root: Path, clock: Callable[[], int] = micros_now) -> None:
        """Create or open the pot in that directory."""
        root.mkdir(parents=True, exist_ok=True)
        self.catalog = Catalog(root, create=True)
        self._clock = clock
        self.invoker = Invoker(self.catalog, clock)
        self._chooser = Chooser(self.catalog, self.invoker.watch)
        self._keeper = JoinKeeper(self.catalog, self.invoker.view.segments, self.invoker.key_indexes)
        self.key_indexer = KeyIndexer(self.catalog, self.invoker.view.segments, self.invoker.key_indexes)
        self.inbox = Inbox(root, self.catalog)
        self.deriver = Deriver(self.catalog, self.inbox, self.invoker, clock)
        self.freeing = Freeing(self.catalog, self.inbox, self.invoker)

    def create_stream(
        self,
        name: str,
        schema: str,
        time: str | None = None,
        clock: str = "wall",
        retain: str | None = None,
        rules: Rules = NO_RULES,
        item: str | None = None,
    ) -> None:
        """Create a stream."""
        retention = None if retain is None else parse_retention(retain)
        parsed = Schema.parse(schema, time)
        with self.catalog.write() as tx:
            create_stream(tx, name, parsed, clock=clock, retain=retention, source=None, rules=rules, item=item)

    def create_function(
        self, name: str, function: Callable[..., Any] | str, returns: str, *, arguments: str, vectorized: bool = False
    ) -> None:
        """Create a function."""
        definition = function_of(name, function, returns, arguments, vectorized=vectorized)
        with self.catalog.write() as tx:
            take_seq(tx)
            add_function(tx, definition, LOCAL, calls_function)

    def derive_stream(
        self, name: str, sql: str, *, time: str | None = None, clock: str | None = None, retain: str | None = None
    ) -> None:
        """Create a stream that is derived from a query."""
        retention = None if retain is None else parse_retention(retain)
        derive_stream(self.catalog, name, sql, time=time, retain=retention, clock=clock)

    def derive(self) -> None:
        """Push the changes of queries to the streams that are derived from them."""
        while self.deriver.catch_up() or not self.deriver.is_current:
            pass

    def begin(self, name: str, rows: Any, parts: int = 1) -> Batch:
        """Pin, match and write a batch as `parts` tasks would, without committing it."""
        with self.catalog.read() as tx:
            stream = find_stream(tx, name)
            pinned = pin(tx, self.catalog.root, stream)
        table = pa.Table.from_batches([to_batch(stream.schema, rows)])
        if stream.schema.time is None:
            moment = pa.scalar(self._clock(), pa.timestamp("us", tz="UTC"))
            table = table.append_column(ARRIVAL, pa.repeat(moment, len(table)))
        table = with_instants(stream.schema, table)
        attempt, runs = new_attempt(), []
        size = -(-len(table) // parts) or 1
        for part in range(parts):
            arrivals = Arrivals(pinned, attempt, str(part))
            arrivals.add(table.slice(part * size, size))
            runs += arrivals.finish()
        return Batch(stream.id, attempt, runs)

    def commit(self, batch: Batch) -> None:
        """Commit a batch, as the sink does."""
        with pushes_held(self.catalog.root) as ends, self.catalog.write() as tx:
            check_attempt(tx, batch.attempt)
            stream = stream_by_id(tx, batch.stream_id)
            assert stream is not None
            reserve_pending(tx, self.catalog.root, stream, ends.get(stream.id, 0))
            insert_runs(tx, take_seq(tx), batch.stream_id, batch.runs)

    def push(self, name: str, rows: Any, parts: int = 1) -> None:
        """Write and commit a batch."""
        self.commit(self.begin(name, rows, parts))

    def append(self, name: str, rows: Any, key: str | None = None) -> Pushed:
        """Push rows and punctuations to the inbox, where they are pending until they are taken."""
        with self.catalog.read() as tx:
            stream = CachedStream(find_stream(tx, name), current_seq(tx))
        return push_rows(self.inbox, stream, rows, key, self._clock())

    def plan(self, name: str, records: int | None = None) -> TakenBatch:
        """Read the next records of a stream's inbox as a task of Spark would, without committing them."""
        with self.catalog.read() as tx:
            return self._plan(find_stream(tx, name), records)

    def _plan(self, stream: Stream, records: int | None) -> TakenBatch:
        end = acknowledged_ends(self.catalog.root).get(stream.id, 0)
        directory = log_directory(self.catalog.root, stream.id)
        references, _ = refer(stream.id, directory, stream.taken, end, None, 1)
        batch = pa.RecordBatch.from_pylist([asdict(reference) for reference in references[:records]])
        sink = InboxSink(self.catalog.root)
        return TakenBatch(sink, sink.write(iter([batch] if batch.num_rows else [])))

    def commit_taken(self, batch: TakenBatch) -> None:
        """Commit records, as the sink does."""
        batch.sink.commit([batch.message], 0)

    def take(self, name: str, records: int | None = None) -> None:
        """Move the next records of a stream's inbox into runs."""
        self.commit_taken(self.plan(name, records))

    def take_everything(self) -> None:
        """Move all pending rows into runs, also those of replicas."""
        for stream in self._streams():
            self.commit_taken(self._plan(stream, None))

    def register(
        self,
        sql: str,
        *,
        materialize: bool | None = True,
        name: str | None = None,
        hint: PlanHint = NO_HINT,
        language: str = "sql",
    ) -> str:
        """Register a query and return its handle; with `materialize=None`, `choose` decides whether it is eager."""
        return change(self.catalog, replace(self.bind(sql, language), eager=materialize, name=name, plan_hint=hint))

    def bind(self, sql: str, language: str = "sql") -> Registration:
        """Bind a query, which can then be registered, also in another pot with the same streams and tables."""
        with self.catalog.read() as tx:
            relations = Relations.of(tx)
            query = bind_text(sql, language, relations.describe, relations.function)
            inputs = tuple(relations.new_input(entry) for entry in query.leaves)
        join = new_join(query, [entry.stream_id for entry in inputs])
        shape = shape_of(query.translation or sql).text
        return Registration(sql, shape, inputs, eager=True, name=None, language=language, join=join)

    def unregister(self, handle: str) -> None:
        """Unregister a query."""
        change(self.catalog, Unregistration(handle))

    def compile(self) -> None:
        """Compile the registered queries for the next batches."""
        for stream in self._streams():
            compile_queries(self.catalog, stream)

    def pay(self) -> None:
        """Pay all debts."""
        for stream in self._streams():
            pay_debts(self.catalog, stream, lambda debts: [pay(debt) for debt in debts], 1 << 62)

    def keep_joins(self) -> None:
        """Join all new tuples for the joins whose results are kept."""
        while self.keep_joins_once():
            pass

    def keep_joins_once(self) -> bool:
        """One step of that; True if something changed."""
        return self._keeper.keep(run_in_process)

    def index_keys(self) -> None:
        """Build the key indexes that standing joins need."""
        self.key_indexer.plan()
        while self.key_indexer.build():
            pass

    def choose(self, seconds: float) -> bool:
        """Decide again which clauses are eager, as if that many seconds had passed."""
        return self._chooser.choose(seconds)

    def seal(self, *, everything: bool = False) -> None:
        """Merge the runs that are due; with `everything`, all runs."""
        for stream in self._streams():
            upkeep.seal(self.catalog, stream, everything=everything)

    def repair(self) -> None:
        """Rewrite the files that were reported as damaged."""
        for stream in self._streams():
            repair(self.catalog, stream)

    def expire(self, grace: int = 0) -> None:
        """Drop runs that have been before the horizon for `grace` microseconds."""
        for stream in self._streams():
            upkeep.expire(self.catalog, stream, self._clock(), grace=grace)

    def free(self, grace: int = 0) -> int:
        """Drop runs that nothing has needed for `grace` microseconds; return their number."""
        return sum(self.freeing.free(stream, self._clock(), grace=grace) for stream in self._streams())

    def invoke(self, handle: str, now: int | None = None) -> Answer:
        """The answer of a query."""
        return self.invoker.invoke(handle, now)

    def close(self) -> None:
        """Close the inbox, and sign and close the catalog, as the engine does."""
        self.inbox.close()
        self.catalog.write_digest()
        self.catalog.close()

    def _streams(self) -> list[Stream]:
        with self.catalog.read() as tx:
            return list_streams(tx)
