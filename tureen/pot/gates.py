"""The gates of all streams that have punctuations, a unique key or a lateness; a part of the inbox.

A gate is rebuilt from closed-set files and the records of the log after them. It is changed as records are appended. If
an append fails, the gate is rebuilt before its next use.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import update

from tureen.closed.gate import Gate
from tureen.closed.rules import Rules
from tureen.closed.section import PlacedPattern, decode_section, encode_section
from tureen.errors import DamagedFile, UnknownStream
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog
from tureen.pot.catalog_tables import streams
from tureen.pot.closed_files import ClosedFile, closed_files_of, load_closed_file, store_closed
from tureen.pot.damage import note_lost
from tureen.pot.heads import log_directory
from tureen.pot.log import scan
from tureen.pot.record import Entry
from tureen.pot.streams import Stream, stream_by_id
from tureen.pot.transaction import Transaction
from tureen.schema import Schema


class Submission(NamedTuple):
    """What a push needs to be decided about, besides its record: only pushes that can be rejected have it."""

    schema: Schema
    rules: Rules
    patterns: tuple[PlacedPattern, ...] = ()
    not_valid: Mapping[int, str] = MappingProxyType({})
    """Rows that are rejected whatever is closed, with the reason."""
    only_new: bool = False
    """Whether punctuations that close nothing new are left out: they may have been pushed before."""


class Gates:
    """The gates of the streams of a pot, used by the thread that appends to their logs."""

    def __init__(self, catalog: Catalog) -> None:
        """No gates yet."""
        self._catalog = catalog
        self._gates: dict[int, Gate | None] = {}
        """None for a gate that is to be rebuilt."""

    def __contains__(self, stream: int) -> bool:
        """Whether rows of a stream can be rejected."""
        return stream in self._gates

    def open(self, stream: Stream) -> None:
        """Build the gate of a stream that needs one; damage is reported by pushes."""
        if stream.checked_rules or stream.punctuated:
            self._gates[stream.id] = None
            try:
                self._gate(stream.id)
            except DamagedFile:
                return

    def forget(self, stream: int) -> None:
        """Remove the gate of a dropped stream."""
        self._gates.pop(stream, None)

    def rebuild(self, stream: int) -> None:
        """Rebuild a gate before its next use: it has decided about records that were not appended."""
        if stream in self._gates:
            self._gates[stream] = None

    def admit(self, stream: int, entry: Entry, submission: Submission | None) -> tuple[Entry, int]:
        """The record with the accepted rows of a push, and the number of rejected rows; raises DamagedFile."""
        if stream not in self._gates:
            if submission is None or not (submission.rules or submission.patterns):
                return entry, 0
            self._create(stream, submission)
        gate = self._gate(stream)
        patterns, not_valid = ((), {}) if submission is None else (submission.patterns, submission.not_valid)
        if submission is not None and submission.only_new:
            is_closed = gate.closed.closes_all([placed.pattern for placed in patterns])
            patterns = tuple(placed for placed, closed in zip(patterns, is_closed, strict=True) if not closed)
        batch = pa.ipc.read_record_batch(pa.py_buffer(entry.payload), gate.schema.arrow)
        verdict = gate.pass_through(batch, patterns, entry.arrival, not_valid)
        rejected = verdict.section.rejected_rows
        payload = verdict.accepted.serialize().to_pybytes() if rejected else entry.payload
        section = encode_section(verdict.section)
        return entry._replace(payload=payload, rows=verdict.accepted.num_rows, section=section), rejected

    def summary(self, stream: int) -> dict[str, Any] | None:
        """What is closed in a stream; None if nothing can be."""
        if stream not in self._gates:
            return None
        try:
            return self._gate(stream).summary()
        except DamagedFile as damage:
            return {"error": damage.message}

    def store(self, stream: int, end: int) -> bool:
        """Store what the records up to an offset close, before their segments are removed; False if it cannot be."""
        if stream not in self._gates:
            return True
        try:
            with self._catalog.read() as tx:
                known = stream_by_id(tx, stream)
                files = closed_files_of(tx, stream)
            if known is None:
                return True
            recent = Gate(known.schema, known.checked_rules)
            if read_log(self._catalog, recent, known, covered_to(files), end):
                store_closed(self._catalog, stream, known.schema, known.checked_rules, recent, files, end)
        except DamagedFile as damage:
            note_lost(self._catalog, damage)
            return False
        return True

    def _create(self, stream: int, submission: Submission) -> None:
        if submission.patterns and not submission.rules:
            # Sinks of Spark jobs, which do not know the closed set, are refused from this commit on.
            with self._catalog.write() as tx:
                note_punctuated(tx, stream)
            crash_point("punctuated.after_commit")
        self._gates[stream] = Gate(submission.schema, submission.rules)

    def _gate(self, stream: int) -> Gate:
        gate = self._gates[stream]
        if gate is None:
            with self._catalog.read() as tx:
                known = stream_by_id(tx, stream)
                files = closed_files_of(tx, stream)
            if known is None:
                raise UnknownStream("the stream was dropped")
            gate = read_gate(self._catalog, known, files)
            self._gates[stream] = gate
        return gate


def closed_summary(catalog: Catalog, stream: Stream) -> dict[str, Any] | None:
    """What is closed in a stream, in numbers, in a process without the stream's gate; None if nothing can be."""
    if not (stream.checked_rules or stream.punctuated):
        return None
    with catalog.read() as tx:
        files = closed_files_of(tx, stream.id)
    try:
        return read_gate(catalog, stream, files).summary()
    except DamagedFile as damage:
        return {"error": damage.message}


def note_punctuated(tx: Transaction, stream: int) -> None:
    """Store that a stream has punctuations."""
    tx.execute(update(streams).where(streams.c.id == stream).values(punctuated=True))


def covered_to(files: list[ClosedFile]) -> int:
    """The offset of the log up to which closed-set files cover its records."""
    return max((file.end for file in files), default=0)


def read_gate(catalog: Catalog, stream: Stream, files: list[ClosedFile], end: int | None = None) -> Gate:
    """What a stream's punctuations close, read from its files and its log; raises DamagedFile."""
    gate = Gate(stream.schema, stream.checked_rules)
    for file in files:
        load_closed_file(catalog, gate, file)
    if stream.last_time is not None:
        gate.saw(stream.last_time)
    read_log(catalog, gate, stream, covered_to(files), end)
    return gate


def read_log(catalog: Catalog, gate: Gate, stream: Stream, start: int, end: int | None) -> bool:
    """Close in a gate what the records of the log between two offsets close; whether there was anything.

    Damaged records close nothing: their rows were lost too, which is reported.
    """
    closes = False
    for record in scan(log_directory(catalog.root, stream.id), None, end, check=True):
        if record.entry is None or record.end <= start:
            continue
        section = decode_section(record.entry.section)
        if section.patterns or (record.rows and stream.checked_rules):
            batch = None
            if stream.checked_rules and record.rows:
                batch = pa.ipc.read_record_batch(pa.py_buffer(record.entry.payload), stream.schema.arrow)
            gate.restore(batch, section, record.entry.arrival)
            closes = True
    return closes
