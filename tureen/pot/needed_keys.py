"""Needed keys: the lists of columns by which standing joins find tuples of streams, for the writers of runs."""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import bindparam, delete, insert, select

from tureen.keys import KeyColumns
from tureen.pot.join_tables import needed_keys
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction

StreamKeys = tuple[int, KeyColumns]
"""A stream, by its id, and a list of its columns."""

_OF_STREAM = Prepared(select(needed_keys.c.columns).where(needed_keys.c.stream_id == bindparam("stream")))


def keys_of_stream(tx: Transaction, stream_id: int) -> tuple[KeyColumns, ...]:
    """The lists of columns of a stream by which its new runs are indexed."""
    texts = tx.execute(_OF_STREAM, {"stream": stream_id})
    return tuple(sorted(columns_of_text(text) for text in texts.scalars()))


def all_keys(tx: Transaction) -> frozenset[StreamKeys]:
    """Those of all streams."""
    return frozenset((row.stream_id, columns_of_text(row.columns)) for row in tx.execute(select(needed_keys)))


def set_keys(tx: Transaction, keys: Collection[StreamKeys]) -> None:
    """Replace those of all streams."""
    tx.execute(delete(needed_keys))
    values = [{"stream_id": stream_id, "columns": text_of_columns(columns)} for stream_id, columns in sorted(keys)]
    if values:
        tx.execute(insert(needed_keys), values)


def columns_of_text(text: str) -> KeyColumns:
    """A list of columns as the catalog has it."""
    return tuple((name, domain) for name, domain in json.loads(text))


def text_of_columns(columns: KeyColumns) -> str:
    """A list of columns for the catalog."""
    return json.dumps(columns)
