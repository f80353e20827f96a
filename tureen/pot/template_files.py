"""Files of a template's values: of its first rows, of added rows, and without removed rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from tureen.faults import crash_point
from tureen.pot.members import NUMBER, Members, Part, first_id_column
from tureen.pot.tablefile import write_table

MOST_GONE = 1024
"""The number of removed rows that stay in the files, or an eighth of all rows if that is more."""


def write_first(root: Path, template_id: str, attempt: str, values: pa.RecordBatch) -> Part:
    """Write the rows that a template is registered with."""
    return _write(root, template_id, attempt, pa.Table.from_batches([values]))


def write_added(members: Members, attempt: str, values: pa.RecordBatch) -> tuple[Part, list[Part]]:
    """Write a file with new rows and those of the files that it replaces, and return both.

    It replaces the files before it that are not much larger, so a row is rewritten only a few times, however often rows
    are added.
    """
    replaced: list[Part] = []
    rows = values.num_rows
    for part in reversed(members.parts[1:]):
        if part.rows > 2 * rows:
            break
        replaced.insert(0, part)
        rows += part.rows
    first = members.template.next_number
    numbers = pa.array(np.arange(first, first + values.num_rows, dtype=np.int64))
    new = pa.Table.from_batches([values]).append_column(NUMBER, numbers)
    for index in _streams(members):
        # The first tuple that they are matched with is known only in the commit.
        new = new.append_column(first_id_column(index), pa.nulls(values.num_rows, pa.int64()))
    table = pa.concat_tables([*_standing(members, replaced), new])
    return _write(members.parts[0].root, members.template.id, attempt, table), replaced


def write_remaining(members: Members, attempt: str) -> Part:
    """Write one file with all standing rows, to replace all files."""
    table = pa.concat_tables(_standing(members, members.parts))
    return _write(members.parts[0].root, members.template.id, attempt, table)


def has_many_gone(members: Members, removing: int) -> bool:
    """Whether the files should be rewritten without the removed rows, once `removing` more are removed."""
    return len(members.gone) + removing > max(MOST_GONE, len(members.all_numbers) // 8)


def _standing(members: Members, parts: Sequence[Part]) -> list[pa.Table]:
    """The standing rows of files, with their numbers and with the first tuples that they are matched with."""
    names = list(members.template.columns.names)
    tables = []
    for part in parts:
        table = part.table.select(names).append_column(NUMBER, pa.array(part.numbers))
        for index in _streams(members):
            table = table.append_column(first_id_column(index), pa.array(part.first_ids_of(index)))
        tables.append(table.filter(pa.array(~np.isin(part.numbers, members.gone))))
    return tables


def _streams(members: Members) -> range:
    """The indexes of a template's streams; one over tables alone has a column of first tuples as well."""
    return range(max(1, len(members.template.stream_ids)))


def _write(root: Path, template_id: str, attempt: str, table: pa.Table) -> Part:
    path = f"templates/{attempt}-{template_id}.arrow"
    crash_point("template.before_write")
    batches = table.combine_chunks().to_batches()
    write_table(root / path, batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema))
    crash_point("template.before_commit")
    return Part(root, path, table.num_rows)
