"""Templates in the catalog: many queries of one shape, as one row and one file of values.

The n-th row of the file makes the n-th query. Its handle is the template's with the number behind a dot, so that a
million queries take a million rows of values and nothing else. Those that were unregistered one by one are noted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select, update

from tureen.errors import UnknownQuery
from tureen.language.template import read_template, spell
from tureen.pot.catalog import micros_now, take_seq
from tureen.pot.queries import LOCAL, Registered, check_free, find_query, unknown
from tureen.pot.tablefile import read_table
from tureen.pot.tables import garbage, gone_members, templates
from tureen.schema import Schema

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the catalog has it."""

    id: str
    name: str | None
    sql: str
    shape: str
    stream_id: int
    columns: Schema
    path: str
    rows: int
    owner: str = LOCAL
    shared: bool = False
    seq: int = 0
    registered_at: int = 0

    def values(self, root: Path) -> pa.Table:
        """The values of all its queries, mapped and not copied."""
        return _mapped(root / self.path)

    def member(self, root: Path, number: int) -> Registered:
        """Its n-th query, as if it had been registered by itself and were lazy."""
        row = self.values(root).slice(number, 1).to_pylist()[0]
        return Registered(
            id=f"{self.id}.{number}",
            name=None if self.name is None else f"{self.name}.{number}",
            sql=read_template(self.sql).fill(spelt(self.columns, row)),
            shape=self.shape,
            stream_id=self.stream_id,
            seq=self.seq,
            registered_at=self.registered_at,
            owner=self.owner,
            shared=self.shared,
        )


def spelt(columns: Schema, row: dict[str, Any]) -> dict[str, str]:
    """A row of values as they are written in SQL, by their names in lower case."""
    return {column.name.lower(): spell(row[column.name], column.type) for column in columns.columns}


def add_template(tx: Connection, new: Template) -> None:
    """Let all queries of a template stand; its file of values is finished."""
    if new.name is not None:
        check_free(tx, new.owner, new.name)
    tx.execute(
        insert(templates).values(
            id=new.id,
            owner=new.owner,
            shared=new.shared,
            name=new.name,
            name_key=None if new.name is None else new.name.lower(),
            sql=new.sql,
            shape=new.shape,
            stream_id=new.stream_id,
            columns=new.columns.sql,
            path=new.path,
            rows=new.rows,
            seq=take_seq(tx),
            registered_at=micros_now(),
        )
    )


def find_template(tx: Connection, handle_or_name: str, owner: str | None = None) -> Template | None:
    """The template of that handle, or of that name of its owner, or None; others' only where they are shared."""
    whose = LOCAL if owner is None else owner
    by_handle = templates.c.id == handle_or_name
    if owner is not None:
        by_handle &= or_(templates.c.owner == owner, templates.c.shared)
    by_name = and_(templates.c.owner == whose, templates.c.name_key == handle_or_name.lower())
    row = tx.execute(select(templates).where(or_(by_handle, by_name))).first()
    return None if row is None else _template(row)


def find_member(tx: Connection, root: Path, handle_or_name: str, owner: str | None = None) -> Registered | None:
    """The query of a template by its handle or name, or None."""
    found = _member(tx, handle_or_name, owner)
    return None if found is None else found[0].member(root, found[1])


def _member(tx: Connection, handle_or_name: str, owner: str | None) -> tuple[Template, int] | None:
    """The template and the number that a handle or name means, where that query stands."""
    before, _, digits = handle_or_name.rpartition(".")
    if not before or not _NUMBER.fullmatch(digits):
        return None
    template, number = find_template(tx, before, owner), int(digits)
    if template is None or number >= template.rows or _is_gone(tx, template.id, number):
        return None
    return template, number


def _is_gone(tx: Connection, template_id: str, number: int) -> bool:
    same = (gone_members.c.template_id == template_id, gone_members.c.number == number)
    return tx.execute(select(gone_members.c.number).where(*same)).first() is not None


def find_standing(tx: Connection, root: Path, handle_or_name: str, owner: str | None = None) -> Registered:
    """The query of that handle or name, whether it stands by itself or in a template."""
    return find_member(tx, root, handle_or_name, owner) or find_query(tx, handle_or_name, owner)


def list_templates(tx: Connection, owner: str | None = None, *, with_shared: bool = False) -> list[Template]:
    """All templates in order of registration, or an owner's; `with_shared` has also what others share."""
    found = select(templates).order_by(templates.c.seq)
    if owner is not None:
        visible = templates.c.owner == owner
        found = found.where(or_(visible, templates.c.shared) if with_shared else visible)
    return [_template(row) for row in tx.execute(found)]


def share_template(tx: Connection, template_id: str, shared: bool) -> None:
    """Let others see a template and its queries, or no longer."""
    tx.execute(update(templates).where(templates.c.id == template_id).values(shared=shared))


def gone(tx: Connection, template_id: str) -> set[int]:
    """The numbers of a template's queries that do not stand any more."""
    found = tx.execute(select(gone_members.c.number).where(gone_members.c.template_id == template_id))
    return set(found.scalars())


def drop_member(tx: Connection, handle: str, owner: str | None = None) -> None:
    """Let one query of a template stand no longer."""
    found = _member(tx, handle, owner)
    # By its handle alone: a name may be another query's tomorrow.
    if found is None or owner not in (None, found[0].owner) or not handle.startswith(found[0].id):
        raise unknown(handle)
    tx.execute(insert(gone_members).values(template_id=found[0].id, number=found[1]))


def drop_template(tx: Connection, template_id: str) -> None:
    """Let all queries of a template stand no longer."""
    row = tx.execute(delete(templates).where(templates.c.id == template_id).returning(templates.c.path)).first()
    if row is None:
        raise UnknownQuery(f"there is no template '{template_id}'", hint="it was unregistered before")
    take_seq(tx)
    tx.execute(delete(gone_members).where(gone_members.c.template_id == template_id))
    tx.execute(insert(garbage).values(path=row.path, since=micros_now()))


def count_members_of_shape(tx: Connection, shape: str) -> int:
    """How many queries of that shape are in templates, whether they still stand or not."""
    rows = select(func.coalesce(func.sum(templates.c.rows), 0)).where(templates.c.shape == shape)
    return int(tx.execute(rows).scalar_one())


def count_members(tx: Connection) -> int:
    """How many queries of templates stand."""
    rows = tx.execute(select(func.coalesce(func.sum(templates.c.rows), 0))).scalar_one()
    away = tx.execute(select(func.count()).select_from(gone_members)).scalar_one()
    return int(rows) - int(away)


def standing_numbers(tx: Connection, template: Template) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The numbers of a template's queries that stand, ascending."""
    numbers = np.arange(template.rows, dtype=np.int64)
    away = gone(tx, template.id)
    return np.delete(numbers, sorted(away)) if away else numbers


def _template(row: Row[Any]) -> Template:
    return Template(
        id=row.id,
        name=row.name,
        sql=row.sql,
        shape=row.shape,
        stream_id=row.stream_id,
        columns=Schema.parse(row.columns),
        path=row.path,
        rows=row.rows,
        owner=row.owner,
        shared=row.shared,
        seq=row.seq,
        registered_at=row.registered_at,
    )


_mapped = lru_cache(maxsize=64)(read_table)
