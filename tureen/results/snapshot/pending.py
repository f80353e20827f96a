"""Pending rows: pushed and durable in the inbox, but not in runs yet.

They are the newest level of a stream. An answer reads them from the log, from the offset up to which rows are in runs
to the published end of the log, and scans them like a tail. Tuple ids follow the order of the log, so a pending row has
the id that it has in a run later.

Pending rows are held in pieces. A piece is never changed: reading further creates new pieces and combines small ones,
so that an answer scans few of them and each row is copied a few times at most.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from tureen.closed.section import stored_patterns
from tureen.pot.home_progress import home_time, latest, progress_in
from tureen.pot.log import scan
from tureen.pot.record import LogRecord
from tureen.pot.reserved_ids import Reservation
from tureen.pot.streams import Stream
from tureen.results.snapshot.segment import Segment
from tureen.schema import Schema
from tureen.stems.pushed import stored_tuples
from tureen.stems.run import in_memory, sort_by_time

SMALL_ROWS = 4_096
"""Pieces of fewer rows together are always combined."""

LARGE_ROWS = 65_536
"""A piece of this many rows is not combined with later ones."""


@dataclass(frozen=True)
class Piece:
    """The rows of consecutive records of the log, with consecutive ids."""

    schema: Schema
    first_id: int
    tuples: pa.Table
    """In order of arrival."""
    ends: tuple[int, ...]
    """The end of each record, in ascending order."""
    rows: tuple[int, ...]
    """The number of rows up to the end of each record."""

    @property
    def end(self) -> int:
        """The end of its last record."""
        return self.ends[-1]

    @property
    def next_id(self) -> int:
        """The id after its last row."""
        return self.first_id + len(self.tuples)

    @cached_property
    def segment(self) -> Segment:
        """The rows as a segment without an index."""
        tuples = sort_by_time(self.schema, self.tuples)
        run = in_memory(self.schema, tuples)
        # The ids of runs are positive, so no segment of runs has this key.
        key = (-1 - self.first_id, self.next_id)
        return Segment(key, self.first_id, len(self.tuples), tuples.min_time, tuples.max_time, lambda: run, list, None)

    def after(self, offset: int) -> Piece:
        """The piece without the records that end at or before an offset."""
        count = bisect_right(self.ends, offset)
        if count == 0:
            return self
        taken = self.rows[count - 1]
        rows = tuple(rows - taken for rows in self.rows[count:])
        return Piece(self.schema, self.first_id + taken, self.tuples.slice(taken), self.ends[count:], rows)

    def joined(self, following: Piece) -> Piece:
        """The rows of this piece and of the one that follows it."""
        tuples = pa.concat_tables([self.tuples, following.tuples]).combine_chunks()
        rows = tuple(len(self.tuples) + rows for rows in following.rows)
        return Piece(self.schema, self.first_id, tuples, self.ends + following.ends, self.rows + rows)


@dataclass(frozen=True)
class PendingSection:
    """The punctuations and rejected rows of a record, its end in the log, and the id of its first row."""

    end: int
    first_id: int
    content: bytes

    @cached_property
    def punctuations(self) -> list[tuple[int, dict[str, Any]]]:
        """The punctuations as they are stored, each with the id of the first tuple after it."""
        return [(self.first_id + at, pattern) for at, pattern in stored_patterns(self.content)]


class Continuation:
    """What was last derived from pending rows: those that remain after a commit, and those that were read on.

    Threads that are woken by a push all read it, and share what the first of them has read. The references are weak, so
    that whoever keeps an old answer does not keep all rows that were pushed since.
    """

    def __init__(self) -> None:
        """Nothing was read yet."""
        self.lock = threading.Lock()
        self.remaining: Callable[[], PendingRows | None] = lambda: None
        self.rows: Callable[[], PendingRows | None] = lambda: None
        self.ids_depend_on: object = None


@dataclass(frozen=True)
class PendingRows:
    """The pending rows of a stream between two offsets of its log."""

    start: int
    end: int
    pieces: tuple[Piece, ...] = ()
    damaged: bool = False
    """Whether a part of the log could not be read; its rows are not here, and are rejected later."""
    sections: tuple[PendingSection, ...] = ()
    """Of the records with punctuations or rejected rows, in order."""
    home_time: int | None = None
    """Of a replica: the highest time at the home of its stream, as far as its records tell it."""
    _counted: tuple[int, int] = (0, 0)
    """The number of sections whose punctuations were counted before, and the number of these."""
    _continuation: Continuation = field(default_factory=Continuation, compare=False, repr=False)

    def rows_after(self, offset: int) -> int:
        """The number of rows of the records after an offset."""
        return sum(len(piece.tuples) for piece in self.after(offset).pieces)

    def after(self, offset: int) -> PendingRows:
        """Without the records that end at or before an offset."""
        if offset == self.start and not self.damaged:
            return self
        continuation = self._continuation
        with continuation.lock:
            rows = continuation.remaining()
            if rows is None or rows.start != offset:
                remaining = (piece.after(offset) for piece in self.pieces if piece.end > offset)
                pieces = tuple(piece for piece in remaining if len(piece.tuples))
                sections = tuple(section for section in self.sections if section.end > offset)
                end = max(offset, self.end)
                rows = PendingRows(offset, end, pieces, sections=sections, home_time=self.home_time)
                continuation.remaining = weakref.ref(rows)
            return rows

    def read_to(self, directory: Path, stream: Stream, reserved: Sequence[Reservation], end: int) -> PendingRows:
        """With the records of the stream's log up to an offset; threads that read on from here decode a record once."""
        continuation, ids_depend_on = self._continuation, (stream.next_id, tuple(reserved))
        with continuation.lock:
            rows = continuation.rows() if continuation.ids_depend_on == ids_depend_on else None
            if rows is None or rows.end > end or rows.damaged:
                rows = self
            if rows.end < end:
                rows = rows._read_on(directory, stream, reserved, end)
                continuation.rows, continuation.ids_depend_on = weakref.ref(rows), ids_depend_on
            return rows

    def _read_on(self, directory: Path, stream: Stream, reserved: Sequence[Reservation], end: int) -> PendingRows:
        records, damaged, sections, known_time = [], False, list(self.sections), self.home_time
        with_sections: dict[int, bytes] = {}
        for record in scan(directory, self.end, end, check=True):
            tuples = _tuples_of(stream.schema, record)
            if tuples is None or record.entry is None:
                damaged = True
            else:
                records.append((record.end, tuples))
                known_time = latest(known_time, home_time(progress_in(record.entry.key)))
                if record.entry.section:
                    with_sections[record.end] = bytes(record.entry.section)
        pieces = self.pieces
        reserved_ends = [reservation.end for reservation in reserved]
        for group, members in groupby(records, key=lambda record: bisect_left(reserved_ends, record[0])):
            first_id = reserved[group].first_id if group < len(reserved) else stream.next_id
            if pieces and bisect_left(reserved_ends, pieces[-1].end) == group:
                first_id = pieces[-1].next_id
            piece = _piece(stream.schema, first_id, list(members))
            firsts = zip(piece.ends, (0, *piece.rows[:-1]), strict=True)
            sections += [
                PendingSection(record_end, first_id + before, with_sections[record_end])
                for record_end, before in firsts
                if record_end in with_sections
            ]
            pieces = _combined([*pieces, piece]) if len(piece.tuples) else pieces
        # Counting decodes sections, which most readers do not need.
        counted = (len(self.sections), self.punctuation_count) if "punctuation_count" in vars(self) else self._counted
        return PendingRows(self.start, end, pieces, damaged, tuple(sections), known_time, counted)

    @cached_property
    def punctuation_count(self) -> int:
        """The number of pending punctuations."""
        sections, count = self._counted
        return count + sum(len(section.punctuations) for section in self.sections[sections:])

    def punctuations(self, skipped: int) -> list[tuple[int, dict[str, Any]]]:
        """The pending punctuations as they are stored, in order, without some of the first ones.

        Each has the id of the first tuple after it.
        """
        places: list[tuple[int, dict[str, Any]]] = []
        for section in self.sections:
            if skipped < len(section.punctuations):
                places += section.punctuations[max(skipped, 0) :]
            skipped -= len(section.punctuations)
        return places


def _tuples_of(schema: Schema, record: LogRecord) -> pa.Table | None:
    """The tuples of a record; None if it is damaged."""
    if record.entry is None:
        return None
    try:
        return stored_tuples(schema, record.entry.payload, record.entry.arrival)
    except (pa.ArrowException, ValueError):
        return None


def _piece(schema: Schema, first_id: int, records: Sequence[tuple[int, pa.Table]]) -> Piece:
    ends, tables = zip(*records, strict=True)
    rows = tuple(accumulate(len(table) for table in tables))
    return Piece(schema, first_id, pa.concat_tables(tables).combine_chunks(), ends, rows)


def _combined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Combine the last pieces while they are small, or about equally large."""
    *before, last = pieces
    while before:
        size = len(before[-1].tuples)
        similar = size <= 2 * len(last.tuples) or size + len(last.tuples) <= SMALL_ROWS
        if not similar or size >= LARGE_ROWS or before[-1].next_id != last.first_id:
            break
        last = before.pop().joined(last)
    return (*before, last)
