"""Files of values: the contents of users' tables, and the parameters of templates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tureen.pot.files import durable_file
from tureen.pot.parts import Parts, PartsWriter


@dataclass(frozen=True, slots=True)
class Content:
    """A finished file with all rows of a table."""

    path: str
    rows: int
    bytes: int


def write_table(path: Path, batch: pa.RecordBatch) -> None:
    """Write a batch of rows as a new durable file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with durable_file(path) as file:
        parts = PartsWriter(file, path.name)
        parts.add(sink.getvalue())
        parts.finish()


def read_table(path: Path) -> pa.Table:
    """The rows of a file, verified, mapped and not copied; raises DamagedFile."""
    return pa.ipc.open_file(pa.BufferReader(Parts(path).read(0))).read_all()
