"""Pins: what a batch is matched with, fixed before it begins. Has few imports, because Spark's planners import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tureen.keys import KeyColumns
from tureen.pot.needed_keys import keys_of_stream
from tureen.pot.query_runs import compiled_seq, live_query_runs
from tureen.pot.streams import Stream
from tureen.pot.transaction import Transaction
from tureen.schema import Schema


@dataclass(frozen=True, slots=True)
class Pin:
    """A stream and its Query SteM as they were when a batch began."""

    root: str
    stream_id: int
    schema: Schema
    queries: tuple[str, ...]
    """The files of the compiled query runs, relative to the pot, by ascending clause numbers."""
    queries_seq: int
    """The commit up to which the eager clauses are in them."""
    keys: tuple[KeyColumns, ...] = ()
    """The columns of the key indexes that large runs are written with."""


def pin(tx: Transaction, root: Path, stream: Stream) -> Pin:
    """Fix the version of the Query SteM that a batch is matched with."""
    paths = tuple(run.path for run in live_query_runs(tx, stream.id))
    return Pin(str(root), stream.id, stream.schema, paths, compiled_seq(tx, stream.id), keys_of_stream(tx, stream.id))
