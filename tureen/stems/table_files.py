"""The content of a table as a file of the pot.

Apart from `table_content`, which clients use too: this module needs the pot's files.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tureen.faults import crash_point
from tureen.pot.tablefile import Content, read_table, write_table


def write_content(root: Path, table_id: str, attempt: str, batch: pa.RecordBatch) -> Content:
    """Write a table's rows as a new file, which becomes real when a commit names it."""
    name = f"tables/{table_id}/{attempt}-0.arrow"
    crash_point("table.before_write")
    write_table(root / name, batch)
    return Content(name, batch.num_rows, (root / name).stat().st_size)


def read_content(root: Path, content: Content) -> pa.Table:
    """A table's rows, memory-mapped."""
    return read_table(root / content.path)
