"""The key indexes that a process uses: of runs, and of the contents of tables.

Those of large runs are in files, once the engine has written them (`tureen.pipeline.key_indexing`). Others are built in
memory, by the first join that needs them, and dropped with their run or table, or if others need the memory.
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
from tureen.results.snapshot.segment import Segment
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

    def can_keep(self, rows: int, columns: KeyColumns) -> bool:
        """Whether an index of that many rows can be kept at all."""
        return most_bytes(rows, len(columns)) <= self._max_bytes

    def is_ready(self, segment: Segment, columns: KeyColumns) -> bool:
        """Whether there is an index of a segment by columns, which needs not be built."""
        if segment.stored_keys(columns) is not None:
            return True
        self._drop_gone()
        return self._indexes.find((id(segment.run()), columns)) is not None

    def of_segment(self, segment: Segment, columns: KeyColumns) -> KeyIndex:
        """The index of a segment by columns: that of a file, if there is one."""
        stored, run = segment.stored_keys(columns), segment.run()
        if stored is not None:
            is_first = not stored.is_open(columns)
            index = stored.find(columns)
            if index is not None:
                if is_first:
                    # It may have been built before there was a file.
                    self.drop(run, columns)
                return index
        return self._index(run, columns, lambda: key_index_of_run(run, columns))

    def of_table(self, table: pa.Table, columns: KeyColumns) -> KeyIndex:
        """The index of a content of a table by columns."""
        return self._index(
            table, columns, lambda: KeyIndex.of([(whole_column(table, name), domain) for name, domain in columns])
        )

    def drop(self, run: OpenRun, columns: KeyColumns) -> None:
        """Drop the index of a run from memory, if there is one."""
        key = id(run), columns
        self._indexes.drop(lambda other: other == key)

    def _index(self, relation: OpenRun | pa.Table, columns: KeyColumns, build: Callable[[], KeyIndex]) -> KeyIndex:
        # First, because the id of a relation that is gone is used again.
        self._drop_gone()
        key = id(relation), columns

        def entry() -> _Entry:
            return _Entry(ref(relation, lambda _: self._gone.append(key)), build())

        return self._indexes.get_once(key, entry).by_key

    def _drop_gone(self) -> None:
        if not self._gone:
            return
        with self._dropping:
            gone = {self._gone.popleft() for _ in range(len(self._gone))}
            self._indexes.drop(lambda key: key in gone)


def key_index_of_run(run: OpenRun, columns: KeyColumns) -> KeyIndex:
    """Build the index of a run by columns."""
    return KeyIndex.of([(run.column(name), domain) for name, domain in columns])


def whole_column(table: pa.Table, name: str) -> pa.Array:
    """A column of a table as one array."""
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
