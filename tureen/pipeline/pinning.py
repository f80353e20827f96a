"""What a batch is matched against, fixed before it begins; light, since Spark's planners import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from tureen.pot.query_runs import compiled_seq, live_query_runs
from tureen.pot.streams import Stream
from tureen.schema import Schema


@dataclass(frozen=True, slots=True)
class Pin:
    """A stream and its Query SteM as they were when a batch began."""

    root: str
    stream_id: int
    schema: Schema
    queries: tuple[str, ...]
    """Where the compiled query runs are, from the root, by ascending clause numbers."""
    queries_seq: int
    """Up to which commit the eager clauses are in them."""


def pin(tx: Connection, root: Path, stream: Stream) -> Pin:
    """Fix the version of the Query SteM that a batch is matched against."""
    paths = tuple(one.path for one in live_query_runs(tx, stream.id))
    return Pin(str(root), stream.id, stream.schema, paths, compiled_seq(tx, stream.id))
