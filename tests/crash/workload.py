"""The workload of a process until it is killed: it pushes, registers, seals, pays, and writes what is acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql.datasource import WriterCommitMessage

from tureen.language import bind_query
from tureen.language.text.shapes import shape_of
from tureen.pipeline import arrival, compiling, upkeep
from tureen.pipeline.debts import pay, pay_debts
from tureen.pipeline.inbox_sink import InboxSink
from tureen.pipeline.inbox_source import InboxReader
from tureen.pipeline.join_keeping import JoinKeeper
from tureen.pipeline.key_indexing import KeyIndexer
from tureen.pot import log
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.inbox import Inbox
from tureen.pot.kept_joins import new_join
from tureen.pot.record import Entry
from tureen.pot.registered import NewInput, Registration
from tureen.pot.registering import change_together
from tureen.pot.streams import create_stream, list_streams
from tureen.pot.sweep import sweep
from tureen.query import NamedRelation
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.snapshot.segment_cache import SegmentCache
from tureen.schema import Schema
from tureen.stems.intake import to_batch

SCHEMA = Schema.parse("id BIGINT, a INT")
ROWS = 5
LATE_JOIN = 5
"""The push from which on there is a join by other columns, whose index the runs written before do not have."""


def rows(number: int) -> list[dict[str, int]]:
    """The rows of a push, with unique ids."""
    return [{"id": number * ROWS + row, "a": row} for row in range(ROWS)]


def push(inbox: Inbox, stream: int, number: int) -> int:
    """Push the rows of a number with its key, and return their end offset in the log."""
    payload = to_batch(SCHEMA, rows(number)).serialize().to_pybytes()
    digest = number.to_bytes(16, "little")
    return inbox.push(stream, Entry(payload, ROWS, micros_now(), digest, f"key-{number}")).end


def take(root: Path) -> None:
    """A micro-batch as run by Spark: source, task, commit."""
    reader = InboxReader(root, 1)
    start = {**reader.initialOffset(), "warm": 1}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    sink = InboxSink(root)
    messages: list[WriterCommitMessage | None] = [
        sink.write(reader.read(part)) for part in reader.partitions(start, end)
    ]
    sink.commit(messages, 0)
    reader.stop()


LIMITS = (
    (arrival, "TAIL_ROWS", 10),
    (arrival, "KEYED_ROWS", 10),
    (upkeep, "FAN", 4),
    (compiling, "SMALL_RUN", 2),
    (log, "SEGMENT_BYTES", 1),
)
"""Small limits, so that few rows go through segments, tiers and indexes."""


def work(root: Path, pushes: int) -> Iterator[str]:
    """Run every kind of commit repeatedly; yields the acknowledgements."""
    catalog = Catalog(root, create=True)
    with catalog.read() as tx:
        streams = list_streams(tx)
    if not streams:
        with catalog.write() as tx:
            streams = [create_stream(tx, "s", SCHEMA, clock="wall", retain=None, source=None)]
    stream = streams[0]
    inbox = Inbox(root, catalog)
    segments, indexes = SegmentCache(catalog), KeyIndexes()
    keeper, indexer = JoinKeeper(catalog, segments, indexes), KeyIndexer(catalog, segments, indexes)
    for number in range(pushes):
        push(inbox, stream.id, number)
        yield f"pushed {number}"
        sources = ["s x", "s x JOIN s y ON x.id = y.id"]
        if number >= LATE_JOIN:
            sources.append("s x JOIN s y ON x.id = y.id AND x.a = y.a")
        for source in sources:
            sql = f"SELECT x.id, x.a FROM {source} WHERE x.a <> {number % 7}"
            query = bind_query(sql, lambda _: NamedRelation("s", SCHEMA))
            inputs = tuple(NewInput(stream.id, entry.clause) for entry in query.inputs)
            join = new_join(query, [stream.id] * len(inputs))
            registration = Registration(sql, shape_of(sql).text, inputs, eager=True, join=join)
            (handle,) = change_together(catalog, [registration])
            yield f"registered {handle} {number % 7}"
        take(root)
        compiling.compile_queries(catalog, stream)
        upkeep.seal(catalog, stream)
        pay_debts(catalog, stream, lambda debts: [pay(debt) for debt in debts], 1 << 62)
        keeper.keep()
        indexer.plan()
        indexer.build()
        inbox.trim()
        sweep(catalog, abandoned_after=3600, grace=0)
    inbox.close()
    catalog.close()


def work_with_limits(root: Path, pushes: int, acknowledgements: Path) -> None:
    """Work with the small limits; append the acknowledgements to a file."""
    for module, name, value in LIMITS:
        setattr(module, name, value)
    with acknowledgements.open("w") as file:
        for line in work(root, pushes):
            print(line, file=file, flush=True)
