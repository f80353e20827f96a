"""The key indexes that a process uses: of runs, and of the contents of tables.

Runs that were written while a join needed an index have it in their files. Others are built in memory, by the first
join that needs them, or before by the engine (`tureen.pipeline.key_indexing`), and dropped with their run or table, or
if others need the memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from weakref import ref

import pyarrow as pa

from tureen.bounded_cache import BoundedCache
from tureen.keys import KeyColumns
from tureen.stems.key_index import KeyIndex, most_bytes
from tureen.stems.run import OpenRun

KEPT_INDEX_BYTES = 1 << 31
"""The memory for key indexes of a process; the least recently used are dropped."""

_Key = tuple[int, KeyColumns]


class _Entry(NamedTuple):
    """A reference to what is indexed, which does not keep that in memory, and the index."""

    relation: ref[OpenRun] | ref[pa.Table]
    by_key: KeyIndex


class KeyIndexes:
    """Key indexes by relation and columns; relations never change."""

    def __init__(self, max_bytes: int = KEPT_INDEX_BYTES) -> None:
        """Keep indexes up to that size."""
        self._max_bytes = max_bytes
        self._indexes: BoundedCache[_Key, _Entry] = BoundedCache(max_bytes, lambda entry: entry.by_key.bytes)
        # The keys of relations that no longer exist. They are added while the garbage collector runs, perhaps in a
        # thread that has a lock, and so their indexes are dropped later.
        self._gone: deque[_Key] = deque()
        self._dropping = threading.Lock()

    @property
    def bytes(self) -> int:
        """The memory of all indexes."""
        self._drop_gone()
        return self._indexes.size

    def has_room(self, rows: int, columns: KeyColumns) -> bool:
        """Whether an index of that many rows can be added without dropping others."""
        return self.bytes + most_bytes(rows, len(columns)) <= self._max_bytes

    def can_keep(self, rows: int, columns: KeyColumns) -> bool:
        """Whether an index of that many rows can be kept at all."""
        return most_bytes(rows, len(columns)) <= self._max_bytes

    def has(self, run: OpenRun, columns: KeyColumns) -> bool:
        """Whether there is an index of a run that needs not be built or verified."""
        if run.keys is not None and run.keys.is_open(columns):
            return True
        self._drop_gone()
        # Not `find`, which counts as a use.
        return (id(run), columns) in set(self._indexes.keys())

    def of_run(self, run: OpenRun, columns: KeyColumns) -> KeyIndex:
        """The index of a run by columns: that of its file, if it has one."""
        stored = None if run.keys is None else run.keys.find(columns)
        if stored is not None:
            return stored
        return self._index(run, columns, lambda name: pa.concat_arrays([block.column(name) for block in run.blocks]))

    def of_table(self, table: pa.Table, columns: KeyColumns) -> KeyIndex:
        """The index of a content of a table by columns."""
        return self._index(table, columns, lambda name: whole_column(table, name))

    def drop(self, run: OpenRun, columns: KeyColumns) -> None:
        """Drop the index of a run from memory, if there is one."""
        key = id(run), columns
        self._indexes.drop(lambda other: other == key)

    def _index(
        self, relation: OpenRun | pa.Table, columns: KeyColumns, column_of: Callable[[str], pa.Array]
    ) -> KeyIndex:
        # First, because the id of a relation that is gone is used again.
        self._drop_gone()
        key = id(relation), columns

        def build() -> _Entry:
            index = KeyIndex.of([(column_of(name), domain) for name, domain in columns])
            return _Entry(ref(relation, lambda _: self._gone.append(key)), index)

        return self._indexes.get_once(key, build).by_key

    def _drop_gone(self) -> None:
        if not self._gone:
            return
        with self._dropping:
            gone = {self._gone.popleft() for _ in range(len(self._gone))}
            self._indexes.drop(lambda key: key in gone)


def whole_column(table: pa.Table, name: str) -> pa.Array:
    """A column of a table as one array."""
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
