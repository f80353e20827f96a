"""Rows that punctuations have rejected and that are in the log only: Spark has not taken their records yet."""

from __future__ import annotations

from typing import Any

from tureen.closed.section import ClosedRow, Section, decode_section
from tureen.pot.catalog import Catalog
from tureen.pot.heads import acknowledged_ends, log_directory
from tureen.pot.log import scan
from tureen.pot.runs import rejected_rows
from tureen.pot.streams import Stream, find_stream

_ATTEMPTS = 10


def all_rejected(catalog: Catalog, name: str) -> list[dict[str, Any]]:
    """The rejected rows of a stream, oldest first: those in the catalog, and those that are still pending."""
    for _ in range(_ATTEMPTS):
        with catalog.read() as tx:
            stream = find_stream(tx, name)
            rows = rejected_rows(tx, stream.id)
        pending = pending_rejected(catalog, stream)
        with catalog.read() as tx:
            if find_stream(tx, name).taken == stream.taken:
                break
    return rows + [
        {"row": rejected.row, "reason": rejected.reason, "rejected_at": arrival} for rejected, arrival in pending
    ]


def pending_rejected(catalog: Catalog, stream: Stream) -> list[tuple[ClosedRow, int]]:
    """The rejected rows of pending records, each with the time of arrival."""
    return [
        (rejected, arrival) for section, arrival in _pending_sections(catalog, stream) for rejected in section.rejected
    ]


def _pending_sections(catalog: Catalog, stream: Stream) -> list[tuple[Section, int]]:
    if not (stream.rules or stream.punctuated):
        return []
    end = acknowledged_ends(catalog.root).get(stream.id, 0)
    if end <= stream.taken:
        return []
    records = scan(log_directory(catalog.root, stream.id), stream.taken, end, check=True)
    entries = [record.entry for record in records if record.entry is not None and record.entry.section]
    return [(decode_section(entry.section), entry.arrival) for entry in entries]
