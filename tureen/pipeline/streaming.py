"""The streaming queries of a pot on Spark: one for all pushed streams, one for each outside source."""

from __future__ import annotations

import logging
import pickle
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from tureen.errors import InvalidSchema
from tureen.pipeline import gateway
from tureen.pipeline.data_source import InboxDataSource, TureenDataSource
from tureen.pipeline.debts import Debt, Payment, pay
from tureen.pipeline.priority import lower_priority
from tureen.pipeline.session import alive, cores, make_active, spark_session
from tureen.pot.files import make_private_directory
from tureen.pot.streams import Stream
from tureen.schema import name_key

log = logging.getLogger("tureen")

_FILE_FORMATS = frozenset({"json", "csv", "parquet", "orc", "avro", "xml"})
"""Formats that want to be told the schema."""

_INBOX = 0
"""The key of the pushed streams' query; outside sources have their stream's id."""

_PAUSES = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)


class Streaming:
    """Starts streaming queries, starts them again when they fail, and stops those no longer wanted."""

    def __init__(self, root: Path, master: str, settings: Mapping[str, str]) -> None:
        """Find or start Spark, with these settings of its own."""
        self._root = root
        # What Spark itself writes below it has the modes that its umask gives.
        make_private_directory(root / "checkpoints")
        self._spark = spark_session(master, settings)
        make_active(self._spark)
        # Both run in workers of this process's Python; Spark would look for the second in whichever is on its path.
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
        """Why pushed rows are not taken up at the moment, or None."""
        return self._failures[_INBOX][2] if _INBOX in self._failures else None

    @property
    def source_errors(self) -> dict[int, str]:
        """Why outside sources are not read at the moment, by the id of their stream."""
        return {key: text for key, (_, _, text) in list(self._failures.items()) if key != _INBOX}

    def usable(self) -> bool:
        """Whether Spark lives."""
        return alive(self._spark)

    def stand_back(self, nice: int) -> bool:
        """Lower the priority of Spark's processes once the first batch is through; whether that is done.

        Before, Spark needs many seconds of computing until it can take up anything: at a low priority, beside clients
        who push without a pause, it would hardly come to the first row.
        """
        if not self.batches():
            return False
        process = gateway.process_id()
        if process is not None:
            lower_priority(process, nice)
        return True

    def batches(self) -> list[dict[str, float]]:
        """The last micro-batch of each query that runs: its seconds and its rows."""
        found = []
        for query in list(self._running.values()):
            # A query that stops while it is asked is not asked about.
            with suppress(Exception):
                last = query.lastProgress
                if last is not None:
                    seconds = last["durationMs"].get("triggerExecution", 0) / 1000
                    found.append({"seconds": seconds, "rows": float(max(0, last["numInputRows"]))})
        return found

    def align(self, streams: Sequence[Stream]) -> None:
        """Run what the streams want and nothing else."""
        wanted: dict[int, Stream | None] = {stream.id: stream for stream in streams if stream.source is not None}
        wanted[_INBOX] = None
        for key in list(self._running):
            if key not in wanted:
                self._running.pop(key).stop()
        # Also of a source that never ran: its stream is gone, and with it what was wrong.
        for key in [key for key in self._failures if key not in wanted]:
            del self._failures[key]
        for key, stream in wanted.items():
            query = self._running.get(key)
            if query is not None and query.isActive:
                # The inbox's first batch only warms Spark up and says nothing about those that follow.
                progress = query.lastProgress
                if progress is not None and progress["batchId"] >= (1 if key == _INBOX else 0):
                    self._note_success(key, stream)
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
        # The catalog knows how far the inbox was taken, so every start has a checkpoint of its own.
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
        return (
            self._read(stream)
            .writeStream.format("tureen")
            .option("pot", str(self._root))
            .option("stream", stream.name)
            .option("checkpointLocation", str(self._root / "checkpoints" / str(stream.id)))
            .queryName(f"tureen {stream.name} {uuid.uuid4().hex[:8]}")
            .start()
        )

    def _read(self, stream: Stream) -> DataFrame:
        assert stream.source is not None
        kind = str(stream.source["format"])
        reader = self._spark.readStream.format(kind)
        for key, value in stream.source.get("options", {}).items():
            reader = reader.option(key, str(value))
        if kind.lower() in _FILE_FORMATS:
            reader = reader.schema(stream.schema.sql)
        frame = reader.load()
        have = {name_key(name): name for name in frame.columns}
        missing = [name for name in stream.schema.names if name_key(name) not in have]
        if missing:
            raise InvalidSchema(
                f"the source of stream '{stream.name}' has no column '{missing[0]}'",
                hint=f"it has {', '.join(frame.columns)}",
            )
        return frame.select(
            *(
                frame[have[name_key(column.name)]].cast(column.type.sql).alias(column.name)
                for column in stream.schema.columns
            )
        )

    def _note_failure(self, key: int, stream: Stream | None, text: str) -> None:
        count = self._failures.get(key, (0, 0.0, ""))[0]
        pause = _PAUSES[min(count, len(_PAUSES) - 1)]
        self._failures[key] = (count + 1, time.monotonic() + pause, _short(text))
        log.error("%s stopped; trying again in %.1f s: %s", _work_of(stream), pause, _short(text))

    def _note_success(self, key: int, stream: Stream | None) -> None:
        if self._failures.pop(key, None) is not None:
            log.info("%s goes on", _work_of(stream))

    def _may_start(self, key: int) -> bool:
        return key not in self._failures or time.monotonic() >= self._failures[key][1]

    def pay(self, debts: list[Debt]) -> list[Payment]:
        """New queries × old data as one Spark job: a task for each run."""
        rows = [(pickle.dumps(debt),) for debt in debts]
        frame = self._spark.createDataFrame(rows, "debt BINARY").repartition(len(rows))
        paid = frame.mapInArrow(_pay_in_task, "payment BINARY").collect()
        return [pickle.loads(row.payment) for row in paid]

    def stop(self) -> None:
        """Stop all queries; the session stays for the other pots of the process."""
        gateway.users.discard(self)
        for query in self._running.values():
            try:
                query.stop()
            except Exception:
                # A JVM that died has stopped its queries.
                continue
        self._running = {}


def _work_of(stream: Stream | None) -> str:
    """What a streaming query does, for people who read the log."""
    return "taking up pushed rows" if stream is None else f"reading the source of stream '{stream.name}'"


def _short(text: str) -> str:
    """What a person wants of Spark's account: without the stacks."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    ours = [line for line in lines if line.startswith("tureen.errors.")]
    return "\n".join([*lines[:1], *ours[:2]])


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _pay_in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        payments = [pickle.dumps(pay(pickle.loads(debt))) for debt in batch.column("debt").to_pylist()]
        yield pa.record_batch([pa.array(payments, pa.binary())], names=["payment"])
