"""Pushing XML: a document is one push; a stream of XML, which may never end, is pushed in batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from tureen.arguments import check_positive
from tureen.errors import InvalidRows, TureenError
from tureen.position import Pushed
from tureen.schema import Schema
from tureen.stems.document_files import read_document
from tureen.stems.xml_items import ItemReader, read_xml, read_xml_batches

BATCH_ROWS = 10_000
"""The default number of rows per push of a stream of XML."""


class PushTable(Protocol):
    """Pushes the rows of a table to one stream."""

    def __call__(self, rows: pa.Table, *, key: str | None, punctuations: Iterable[Any] = ()) -> Pushed:
        """Push all rows or none."""


class BatchPushes:
    """The pushes of one stream of XML: each is durable when the next begins, and has a key of its own."""

    def __init__(self, push: PushTable, key: str | None) -> None:
        """With a key, the batch of number n has the key `key/n`."""
        self._push, self._key = push, key
        self._batches = self.rows = 0
        self._added = self._rejected = 0
        self._last: Pushed | None = None

    def add(self, rows: pa.Table, punctuations: Iterable[Any] = ()) -> None:
        """Push the rows of a batch."""
        key = None if self._key is None else f"{self._key}/{self._batches}"
        self._last = self._push(rows, key=key, punctuations=punctuations)
        self._batches += 1
        self.rows += rows.num_rows
        self._added += self._last.added
        self._rejected += self._last.rejected

    def finish(self, schema: Schema, punctuations: Iterable[Any] = ()) -> Pushed:
        """The position after the last batch, with the sums of all; `punctuations` come after the rows."""
        after = list(punctuations)
        if self._last is None or after:
            self.add(schema.arrow.empty_table(), after)
        assert self._last is not None
        return Pushed(str(self._last), self._added, self._rejected, repeated=self._last.repeated)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Add to errors what was stored before."""
        try:
            yield
        except TureenError as error:
            stored = f"{self.rows:,} rows in {self._batches:,} batches before this were stored"
            error.detail = stored if error.detail is None else f"{error.detail}; {stored}"
            raise


def push_xml(
    push: PushTable,
    schema: Schema,
    item: str | None,
    source: Any,
    key: str | None,
    batch: int,
    punctuations: Iterable[Any],
) -> Pushed:
    """Push the items of a document, given as bytes or a path, or of a file object, which is read in batches."""
    check_positive(batch, "batch")
    if isinstance(source, bytes | bytearray | memoryview):
        return push(read_xml(schema, item, bytes(source), "the document"), key=key, punctuations=punctuations)
    if isinstance(source, str | os.PathLike):
        document = read_xml(schema, item, read_document(source), Path(source).name)
        return push(document, key=key, punctuations=punctuations)
    if not hasattr(source, "read"):
        raise InvalidRows(f"XML must be bytes, a path or a file object, got {type(source).__name__}")
    pushes = BatchPushes(push, key)
    with pushes.reported():
        reader = ItemReader(schema, item, "the stream")
        for rows in read_xml_batches(reader, source, batch):
            pushes.add(rows)
    return pushes.finish(schema, punctuations)
