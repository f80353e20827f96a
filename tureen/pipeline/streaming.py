"""The streaming queries of a pot on Spark: one for all pushed streams, one for each external source."""

from __future__ import annotations

import logging
import pickle
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import filter as filter_items
from pyspark.sql.functions import transform
from pyspark.sql.streaming import StreamingQuery

from tureen.errors import InvalidSchema
from tureen.pipeline import gateway
from tureen.pipeline.data_source import InboxDataSource, TureenDataSource
from tureen.pipeline.debts import Debt, Payment, pay
from tureen.pipeline.join_task import JoinTask, TaskResult, run_join_task
from tureen.pipeline.priority import lower_priority
from tureen.pipeline.session import alive, cores, make_active, spark_session
from tureen.pipeline.source_pushing import HEADERS, SourcePushing
from tureen.pot.catalog import micros_now
from tureen.pot.files import make_private_directory
from tureen.pot.inbox import Inbox
from tureen.pot.streams import Stream
from tureen.schema import name_key

log = logging.getLogger("tureen")

Result = TypeVar("Result")

_FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "avro", "xml"})
"""Formats that need the schema."""

_KAFKA_HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The headers of a row as Kafka's source gives them."""

_INBOX = 0
"""The key of the pushed streams' query; those of external sources are their streams' ids."""

_RAISED = re.compile(r"[\w.]+(Error|Exception|Interrupt): ")
"""The line of a Python traceback that names the exception."""

_PAUSES = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)


class Streaming:
    """Starts streaming queries, restarts them when they fail, and stops those of dropped streams."""

    def __init__(self, root: Path, master: str, settings: Mapping[str, str], inbox: Inbox) -> None:
        """Reuse or start Spark, with these Spark settings; rows that are checked are pushed to the inbox."""
        self._root, self._inbox = root, inbox
        # Private, because the modes of the files that Spark writes in it depend on the umask.
        make_private_directory(root / "checkpoints")
        self._spark = spark_session(master, settings)
        make_active(self._spark)
        # Registered so that both run with this process's Python; Spark would load the second with that of its PATH.
        for source in (InboxDataSource, TureenDataSource):
            self._spark.dataSource.register(source)
        # The tasks' workers load the kernels while Spark plans the first batch.
        threading.Thread(target=self._warm_workers, name="tureen-warm", daemon=True).start()
        self._running: dict[int, StreamingQuery] = {}
        self._failures: dict[int, tuple[int, float, str]] = {}
        gateway.users.add(self)

    def _warm_workers(self) -> None:
        with suppress(Exception):
            self._spark.range(1).mapInArrow(_unchanged, "id BIGINT").collect()

    @property
    def error(self) -> str | None:
        """The current error of the pushed streams' query, or None."""
        return self._failures[_INBOX][2] if _INBOX in self._failures else None

    @property
    def source_errors(self) -> dict[int, str]:
        """The current errors of external sources, by the id of their stream."""
        return {key: text for key, (_, _, text) in list(self._failures.items()) if key != _INBOX}

    def usable(self) -> bool:
        """Whether Spark is running."""
        return alive(self._spark)

    def lower_priority(self, nice: int) -> bool:
        """Lower the priority of Spark's processes after the first batch; True once that is done.

        Not before, because Spark needs many seconds of processor time until it can process any row: at a low priority,
        beside clients that push continuously, the first batch would take very long.
        """
        if not self.batches():
            return False
        process = gateway.process_id()
        if process is not None:
            lower_priority(process, nice)
        return True

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each running query: its seconds and its rows."""
        batches = []
        for query in list(self._running.values()):
            # A query that stops in the meantime is skipped.
            with suppress(Exception):
                last = query.lastProgress
                if last is not None:
                    seconds = last["durationMs"].get("triggerExecution", 0) / 1000
                    batches.append({"seconds": seconds, "rows": float(max(0, last["numInputRows"]))})
        return batches

    def align(self, streams: Sequence[Stream]) -> None:
        """Start the queries that these streams need and stop all others."""
        needed: dict[int, Stream | None] = {stream.id: stream for stream in streams if stream.source is not None}
        needed[_INBOX] = None
        for key in list(self._running):
            if key not in needed:
                self._running.pop(key).stop()
        # Also the failures of sources that never ran and whose streams were dropped.
        for key in [key for key in self._failures if key not in needed]:
            del self._failures[key]
        for key, stream in needed.items():
            query = self._running.get(key)
            if query is not None and query.isActive:
                if key in self._failures and _has_succeeded(query, key):
                    del self._failures[key]
                    log.info("%s resumed", _activity(stream))
                continue
            if query is not None:
                self._note_failure(key, stream, str(query.exception()))
                del self._running[key]
            if self._may_start(key):
                self._start(key, stream)

    def _start(self, key: int, stream: Stream | None) -> None:
        try:
            self._running[key] = self._start_inbox() if stream is None else self._start_source(stream)
        except Exception as error:
            self._note_failure(key, stream, str(error))

    def _start_inbox(self) -> StreamingQuery:
        # The catalog has the inbox's offsets, so every start uses a new checkpoint.
        checkpoints = self._root / "checkpoints"
        for old in checkpoints.glob("inbox-*"):
            shutil.rmtree(old, ignore_errors=True)
        options = {"pot": str(self._root), "tasks": str(cores(self._spark))}
        source = self._spark.readStream.format("tureen_inbox").options(**options).load()
        return (
            source.writeStream.format("tureen_inbox")
            .options(**options)
            .option("checkpointLocation", str(checkpoints / f"inbox-{uuid.uuid4().hex}"))
            .queryName(f"tureen inbox {uuid.uuid4().hex[:8]}")
            .start()
        )

    def _start_source(self, stream: Stream) -> StreamingQuery:
        checkpoint = self._root / "checkpoints" / str(stream.id)
        writer = self._read(stream).writeStream.option("checkpointLocation", str(checkpoint))
        writer = writer.queryName(f"tureen {stream.name} {uuid.uuid4().hex[:8]}")
        if not stream.rules:
            return writer.format("tureen").option("pot", str(self._root)).option("stream", stream.name).start()
        # Tasks cannot decide about rows: the thread that appends to the stream's log does.
        pushing = SourcePushing(self._inbox, stream, checkpoint, micros_now)
        return writer.foreachBatch(lambda frame, batch_id: pushing.push(frame.toArrow(), batch_id)).start()

    def _read(self, stream: Stream) -> DataFrame:
        assert stream.source is not None
        kind = str(stream.source["format"])
        reader = self._spark.readStream.format(kind)
        for key, value in stream.source.get("options", {}).items():
            reader = reader.option(key, str(value))
        header = stream.rules.header
        if kind.lower() in _FILE_FORMATS:
            reader = reader.schema(stream.schema.sql + ("" if header is None else f", {_KAFKA_HEADERS}"))
        frame = reader.load()
        by_key = {name_key(name): name for name in frame.columns}
        missing = [name for name in stream.schema.names if name_key(name) not in by_key]
        if missing:
            raise InvalidSchema(
                f"the source of stream '{stream.name}' has no column '{missing[0]}'",
                hint=f"it has {', '.join(frame.columns)}",
            )
        columns = [
            frame[by_key[name_key(column.name)]].cast(column.type.sql).alias(column.name)
            for column in stream.schema.columns
        ]
        if header is not None:
            columns.append(_header_texts(frame, stream.name, header))
        return frame.select(*columns)

    def _note_failure(self, key: int, stream: Stream | None, text: str) -> None:
        count = self._failures.get(key, (0, 0.0, ""))[0]
        pause = _PAUSES[min(count, len(_PAUSES) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause, _short(text))
        log.error("%s stopped; retrying in %.1f s: %s", _activity(stream), pause, _short(text))

    def _may_start(self, key: int) -> bool:
        return key not in self._failures or time.monotonic() >= self._failures[key][1]

    def pay(self, debts: list[Debt]) -> list[Payment]:
        """New queries × old data as one Spark job: a task for each run."""
        return self._run(pay, debts)

    def join(self, tasks: list[JoinTask]) -> list[TaskResult]:
        """New tuples × the tuples of other streams as one Spark job."""
        return self._run(run_join_task, tasks)

    def _run(self, function: Callable[[Any], Result], arguments: Sequence[Any]) -> list[Result]:
        """Call a function with each argument, in as many tasks of one Spark job."""
        rows = [(pickle.dumps((function, argument)),) for argument in arguments]
        frame = self._spark.createDataFrame(rows, "call BINARY").repartition(len(rows))
        returned = frame.mapInArrow(_call_in_task, "result BINARY").collect()
        return [pickle.loads(row.result) for row in returned]

    def stop(self) -> None:
        """Stop all queries; the session stays for the other pots of the process."""
        gateway.users.discard(self)
        for query in self._running.values():
            try:
                query.stop()
            except Exception:
                # If the JVM died, the query has ended too.
                continue
        self._running = {}


def _has_succeeded(query: StreamingQuery, key: int) -> bool:
    """Whether a query has processed rows since it started: the inbox's first batch only warms up Spark."""
    progress = query.lastProgress
    return progress is not None and progress["batchId"] >= (1 if key == _INBOX else 0)


def _header_texts(frame: DataFrame, stream: str, header: str) -> Column:
    """The texts of each row's headers of a name, which the source gives as Kafka's does."""
    if "headers" not in frame.columns:
        raise InvalidSchema(
            f"the source of stream '{stream}' gives no headers",
            hint="set its option includeHeaders to true, or name a column in punctuate",
        )
    named = filter_items(frame["headers"], lambda item: item["key"] == header)
    return transform(named, lambda item: item["value"].cast("string")).alias(HEADERS)


def _activity(stream: Stream | None) -> str:
    """What a streaming query does, for the log."""
    return "reading pushed rows" if stream is None else f"reading the source of stream '{stream.name}'"


def _short(text: str) -> str:
    r"""Spark's error text without the stack traces, but with what a Python worker raised.

    >>> print(_short("SparkException: \nTraceback (most recent call last):\n  File …\nKeyError: 'a'\n\tat java…"))
    SparkException:
    KeyError: 'a'
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    ours = [line for line in lines if line.startswith("tureen.errors.")]
    raised = [line for line in lines[1:] if _RAISED.match(line)]
    return "\n".join([*lines[:1], *(ours[:2] or raised[-1:])])


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _call_in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        calls = [pickle.loads(call) for call in batch.column("call").to_pylist()]
        results = [pickle.dumps(function(argument)) for function, argument in calls]
        yield pa.record_batch([pa.array(results, pa.binary())], names=["result"])
