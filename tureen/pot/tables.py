"""Users' tables in the catalog: dimension data without time, whose whole content is one file.

A content is written under `tables/<id>/` before the transaction that names it, as runs are. The same transaction adds
the previous content to the garbage, so a reader finds the complete old or the complete new content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from tureen.errors import DuplicateName, UnknownTable, nearest
from tureen.pot.catalog import micros_now, take_seq
from tureen.pot.catalog_tables import dimensions, garbage, query_inputs, streams
from tureen.pot.dropping import check_underived, drop_queries
from tureen.pot.statements import Prepared
from tureen.pot.tablefile import Content
from tureen.pot.transaction import Transaction
from tureen.schema import Schema, name_key


@dataclass(frozen=True, slots=True)
class Dimension:
    """A table as the catalog has it at one moment."""

    id: str
    name: str
    schema: Schema
    content: Content
    changed_seq: int
    changed_at: int


def create_dimension(tx: Transaction, table_id: str, name: str, schema: Schema, content: Content) -> None:
    """Add a table."""
    check_free(tx, name)
    seq = take_seq(tx)
    values = {
        "id": table_id,
        "name": name,
        "name_key": name_key(name),
        "columns": schema.sql,
        "created_seq": seq,
    }
    tx.execute(insert(dimensions).values({**values, **_content_values(seq, content)}))


def replace_content(tx: Transaction, table: Dimension, content: Content) -> None:
    """Replace the content of a table."""
    old = tx.execute(select(dimensions.c.path).where(dimensions.c.id == table.id)).scalar()
    if old is None:
        raise UnknownTable(f"table '{table.name}' was dropped meanwhile")
    tx.execute(update(dimensions).where(dimensions.c.id == table.id).values(_content_values(take_seq(tx), content)))
    tx.execute(insert(garbage).values(path=old, since=micros_now()))


def drop_dimension(tx: Transaction, table: Dimension) -> None:
    """Remove a table, and the queries over it; raises if streams are derived from them."""
    take_seq(tx)
    check_underived(tx, f"table '{table.name}'", query_inputs.c.table_id == table.id)
    drop_queries(tx, query_inputs.c.table_id == table.id)
    tx.execute(delete(dimensions).where(dimensions.c.id == table.id))
    tx.execute(insert(garbage).values(path=table.content.path, since=micros_now()))


_BY_NAME = Prepared(select(dimensions).where(dimensions.c.name_key == bindparam("name")))
_BY_ID = Prepared(select(dimensions).where(dimensions.c.id == bindparam("table")))
_STREAM_NAMED = Prepared(select(streams.c.name).where(streams.c.name_key == bindparam("name")))


def list_dimensions(tx: Transaction) -> list[Dimension]:
    """All tables, in order of creation."""
    return [_dimension(row) for row in tx.execute(select(dimensions).order_by(dimensions.c.created_seq))]


def find_dimension(tx: Transaction, name: str) -> Dimension:
    """The table of that name."""
    row = tx.execute(_BY_NAME, {"name": name_key(name)}).first()
    if row is None:
        stream = _stream_named(tx, name)
        if stream is not None:
            raise UnknownTable(f"'{stream}' is a stream, not a table")
        names = tx.execute(select(dimensions.c.name)).scalars()
        raise UnknownTable(f"there is no table named '{name}'", hint=nearest(name, names))
    return _dimension(row)


def dimension_by_id(tx: Transaction, table_id: str) -> Dimension | None:
    """The table of that id, or None."""
    row = tx.execute(_BY_ID, {"table": table_id}).first()
    return None if row is None else _dimension(row)


def check_free(tx: Transaction, name: str) -> None:
    """Raise if a table or a stream has that name: they share one namespace."""
    if tx.execute(select(dimensions.c.id).where(dimensions.c.name_key == name_key(name))).first():
        raise DuplicateName(
            f"there is a table named '{name}' already",
            hint="replace its rows with replace_table, drop it, or use another name",
        )
    if _stream_named(tx, name) is not None:
        raise DuplicateName(
            f"there is a stream named '{name}' already", hint="streams and tables share one namespace: use another name"
        )


def _stream_named(tx: Transaction, name: str) -> str | None:
    stream: str | None = tx.execute(_STREAM_NAMED, {"name": name_key(name)}).scalar()
    return stream


def _content_values(seq: int, content: Content) -> dict[str, Any]:
    return {
        "path": content.path,
        "rows": content.rows,
        "bytes": content.bytes,
        "changed_seq": seq,
        "changed_at": micros_now(),
    }


def _dimension(row: Any) -> Dimension:
    return Dimension(
        id=row.id,
        name=row.name,
        schema=Schema.parse(row.columns),
        content=Content(row.path, row.rows, row.bytes),
        changed_seq=row.changed_seq,
        changed_at=row.changed_at,
    )
