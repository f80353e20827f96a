"""What a batch is matched against, fixed before it begins; light, since Spark's planners import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from tureen.pot.queries import compiled_queries
from tureen.pot.streams import Stream
from tureen.schema import Schema


@dataclass(frozen=True, slots=True)
class Pin:
    """A stream and its Query SteM as they were when a batch began."""

    root: str
    stream_id: int
    schema: Schema
    queries: str | None
    """Where the compiled query run is, from the root; None where nothing is to be matched."""
    queries_seq: int


def pin(tx: Connection, root: Path, stream: Stream) -> Pin:
    """Fix the version of the Query SteM that a batch is matched against."""
    compiled = compiled_queries(tx, stream.id)
    return Pin(str(root), stream.id, stream.schema, compiled.path, compiled.seq)
