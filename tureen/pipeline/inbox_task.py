"""The part of a task of the inbox's sink that concerns one stream: records in, runs out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa

from tureen.closed.pattern import Pattern
from tureen.closed.section import PlacedPattern, decode_section
from tureen.pipeline.arrival import Arrivals
from tureen.pipeline.inbox_sink import StreamIntake
from tureen.pipeline.pinning import Pin
from tureen.pot.home_progress import progress_in
from tureen.pot.log import Reference, scan_segment
from tureen.pot.reserved_ids import TakenRuns
from tureen.pot.runs import Rejected
from tureen.stems.pushed import stored_tuples


class StreamTask:
    """Reads the records of one stream, in order, and writes their rows as runs.

    Runs are cut where reserved ids end: the ids of one run are consecutive.
    """

    def __init__(self, pinned: Pin, start: int, reserved_ends: Sequence[int], attempt: str, part: str) -> None:
        """Skip records up to the offset `start`, which are in runs already."""
        self._pin, self._reserved_ends = pinned, reserved_ends
        self._attempt, self._part = attempt, part
        self._intake = StreamIntake(start, start)
        self._arrivals: Arrivals | None = None
        self._group = -1
        self._group_end = start
        self._group_rows = 0
        self._patterns: list[tuple[int, Pattern]] = []

    def read(self, reference: Reference) -> None:
        """Read the records of a reference."""
        intake = self._intake
        for record in scan_segment(reference.path, reference.base, reference.start, reference.end, check=True):
            intake.end = max(intake.end, record.end)
            if record.end <= intake.start:
                continue
            if record.entry is None:
                interval = {"bytes": record.end - record.start, "offset": record.start}
                reason = "this part of the inbox is damaged: its checksum does not match"
                intake.rejected.append(Rejected(interval, reason))
                continue
            try:
                tuples = stored_tuples(self._pin.schema, record.entry.payload, record.entry.arrival)
            except (pa.ArrowException, ValueError) as error:
                intake.rejected.append(Rejected({"rows": record.rows}, f"the record cannot be read: {error}"))
                continue
            intake.progress = progress_in(record.entry.key) or intake.progress
            section = decode_section(record.entry.section)
            intake.rejected += [Rejected(row, reason, record.entry.arrival) for row, reason in section.rejected]
            self._add(tuples, record.end, section.patterns)

    def finish(self) -> StreamIntake:
        """Write the remaining rows."""
        self._finish_group()
        return self._intake

    def _add(self, tuples: pa.Table, end: int, patterns: Sequence[PlacedPattern]) -> None:
        group = bisect_left(self._reserved_ends, end)
        if self._arrivals is None or group != self._group:
            self._finish_group()
            self._arrivals, self._group = Arrivals(self._pin, self._attempt, f"{self._part}.{group}"), group
            self._group_rows, self._patterns = 0, []
        self._patterns += [(self._group_rows + at, pattern) for at, pattern in patterns]
        self._arrivals.add(tuples)
        self._group_rows += len(tuples)
        self._group_end = end

    def _finish_group(self) -> None:
        if self._arrivals is not None:
            self._intake.groups.append(TakenRuns(self._group_end, self._arrivals.finish(), self._patterns))
