"""The queries of a template: the files of its rows of values, and the rows that are registered.

The rows that a template was registered with are its first file. Added rows are in further files, of which there are
few: a new file absorbs the small ones before it. A row's number is its index in the first file, or a column of a
further one; it never changes, and is never reused. Removed rows are noted, and omitted from the next file that is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Connection, delete, insert, select, update

from tureen.handle import member_handle, parse_member
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage, gone_members, template_heads, template_parts, templates
from tureen.pot.queries import MemberValues, Registered, RegisteredInput, find_query, unknown
from tureen.pot.tablefile import read_table
from tureen.pot.templates import Template, find_template
from tureen.query import RelationKind
from tureen.schema import Schema

NUMBER, FIRST_ID = "_number", "_first_id"
"""Columns of a further file: a row's number, and the first tuple that it is matched with, NULL in its newest rows."""

Numbers = npt.NDArray[np.int64]

MemberText = Callable[[str, Schema, Mapping[str, Any]], str]
"""Writes the text of a query, given its template's text, the columns of its parameters, and their values."""


@dataclass(frozen=True)
class Part:
    """A file of values."""

    root: Path
    path: str
    rows: int
    first_id: int = 0
    """The first tuple that its newest rows are matched with."""

    @property
    def table(self) -> pa.Table:
        """The content of the file, mapped and not copied."""
        return _mapped(self.root / self.path)

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of its rows, ascending."""
        if NUMBER not in self.table.column_names:
            return np.arange(self.rows, dtype=np.int64)
        numbers: Numbers = self.table.column(NUMBER).to_numpy()
        return numbers

    @cached_property
    def first_ids(self) -> Numbers:
        """The first tuple that each row is matched with."""
        if FIRST_ID not in self.table.column_names:
            return np.broadcast_to(np.int64(0), (self.rows,))
        firsts: Numbers = self.table.column(FIRST_ID).fill_null(self.first_id).to_numpy()
        return firsts

    def row_index(self, number: int) -> int | None:
        """The index of the row with that number; None if it is not in this file."""
        index = int(np.searchsorted(self.numbers, number))
        return index if index < self.rows and self.numbers[index] == number else None


class Members(Sequence[int]):
    """The numbers of a template's standing queries, ascending, and access to these queries."""

    def __init__(self, template: Template, parts: Sequence[Part], gone: Numbers) -> None:
        """The rows of these files, except those with the numbers `gone`, which were removed."""
        self.template, self.parts, self.gone = template, tuple(parts), gone
        self._starts = np.cumsum([0, *(part.rows for part in parts)])

    def __len__(self) -> int:
        """The number of standing queries."""
        return int(self._starts[-1]) - len(self.gone)

    def __getitem__(self, index: int | slice) -> Any:
        """The number at an index, or a list of them, computed without listing the others."""
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"the template has {len(self)} queries, got index {index}")
        row = position + int(np.searchsorted(self._standing_before_gone, position, side="right"))
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return int(self.parts[part].numbers[row - self._starts[part]])

    @cached_property
    def _standing_before_gone(self) -> Numbers:
        """For each removed row, the number of standing queries before it."""
        rows = np.searchsorted(self.all_numbers, self.gone)
        standing: Numbers = rows - np.arange(len(rows))
        return standing

    @cached_property
    def all_numbers(self) -> Numbers:
        """The numbers of all rows in the files, including removed ones."""
        first, *added = (part.numbers for part in self.parts)
        return np.concatenate([first, *added]) if added else first

    @property
    def standing(self) -> Numbers:
        """The numbers of the standing queries."""
        return self.all_numbers[~np.isin(self.all_numbers, self.gone)] if len(self.gone) else self.all_numbers

    def after(self, number: int) -> int:
        """The index of the first query with a greater number."""
        row = int(np.searchsorted(self.all_numbers, number, side="right"))
        return row - int(np.searchsorted(self.gone, number, side="right"))

    def __contains__(self, number: object) -> bool:
        """Whether the query of that number is registered."""
        return isinstance(number, int) and self._row(number) is not None

    def _row(self, number: int) -> tuple[Part, int] | None:
        gone = int(np.searchsorted(self.gone, number))
        if gone < len(self.gone) and self.gone[gone] == number:
            return None
        for part in self.parts:
            index = part.row_index(number)
            if index is not None:
                return part, index
        return None

    def find(self, number: int, text_of: MemberText) -> Registered | None:
        """The query of that number, as a separate lazy query; None if it is not registered."""
        location = self._row(number)
        if location is None:
            return None
        template, (part, index) = self.template, location
        names = template.columns.names
        row = part.table.select(names).slice(index, 1).to_pylist()[0]
        return Registered(
            id=member_handle(template.id, number),
            name=None if template.name is None else member_handle(template.name, number),
            sql=text_of(template.sql, template.columns, row),
            shape=template.shape,
            inputs=(RegisteredInput(stream_id=template.stream_id), RegisteredInput(RelationKind.VALUES)),
            seq=template.seq,
            registered_at=template.registered_at,
            owner=template.owner,
            shared=template.shared,
            label=None if template.label is None else row[template.label],
            values=MemberValues(template.id, template.sql, template.columns, row),
        )

    def first_ids(self, numbers: Numbers) -> Numbers:
        """The first tuples that rows are matched with, by their numbers."""
        if len(self.parts) == 1 and FIRST_ID not in self.parts[0].table.column_names:
            return np.broadcast_to(np.int64(0), (len(numbers),))
        firsts: Numbers = np.concatenate([part.first_ids for part in self.parts])
        return firsts[np.searchsorted(self.all_numbers, numbers)]

    def labels(self, numbers: Numbers) -> list[Any]:
        """The labels of rows, by their numbers; all None if the template has no label."""
        if self.template.label is None:
            return [None] * len(numbers)
        labels: list[Any] = self.take([self.template.label], numbers).column(0).to_pylist()
        return labels

    def take(self, names: Sequence[str], numbers: Numbers) -> pa.Table:
        """Values of rows, by their numbers."""
        table = pa.concat_tables([part.table.select(list(names)) for part in self.parts])
        return table.take(pa.array(np.searchsorted(self.all_numbers, numbers)))


def load_members(tx: Connection, root: Path, template: Template, number: int | None = None) -> Members:
    """The queries of a template as of this transaction; with `number`, valid only for finding that query."""
    rows = tx.execute(
        select(template_parts).where(template_parts.c.template_id == template.id).order_by(template_parts.c.id)
    )
    parts = [Part(root, row.path, row.rows, row.first_id) for row in rows]
    gone = select(gone_members.c.number).where(gone_members.c.template_id == template.id)
    if number is not None:
        gone = gone.where(gone_members.c.number == number)
    numbers = np.sort(np.array(tx.execute(gone).scalars().all(), np.int64))
    return Members(template, [Part(root, template.path, template.rows), *parts], numbers)


def find_standing(
    tx: Connection, root: Path, handle_or_name: str, text_of: MemberText, owner: str | None = None
) -> Registered:
    """The query of that handle or name, separate or of a template."""
    member = parse_member(handle_or_name)
    template = None if member is None else find_template(tx, member.template, owner)
    query = None
    if member is not None and template is not None:
        query = load_members(tx, root, template, member.number).find(member.number, text_of)
    return query or find_query(tx, handle_or_name, owner)


def drop_member(tx: Connection, root: Path, handle: str, owner: str | None = None) -> None:
    """Unregister a query of a template."""
    member = parse_member(handle)
    template = None if member is None else find_template(tx, member.template, owner)
    # By its handle only: another query may take the name.
    if member is None or template is None or member_handle(template.id, member.number) != handle:
        raise unknown(handle)
    if owner not in (None, template.owner) or member.number not in load_members(tx, root, template, member.number):
        raise unknown(handle)
    remove_members(tx, template.id, [member.number])


def remove_members(tx: Connection, template_id: str, numbers: Sequence[int]) -> None:
    """Unregister queries of a template, given the numbers of standing ones."""
    if numbers:
        tx.execute(insert(gone_members), [{"template_id": template_id, "number": number} for number in numbers])
        _increment_version(tx, template_id)


def replace_parts(tx: Connection, members: Members, replaced: Sequence[Part], new: Part | None, added: int) -> None:
    """Replace the last files, if any, by a new one, `added` of whose rows are new.

    Removed rows of the replaced files are then in no file.
    """
    template = members.template
    if new is not None and len(replaced) == len(members.parts):
        tx.execute(update(templates).where(templates.c.id == template.id).values(path=new.path, rows=new.rows))
    elif new is not None:
        values = {"template_id": template.id, "path": new.path, "rows": new.rows, "first_id": new.first_id}
        tx.execute(insert(template_parts).values(values))
    for part in replaced:
        tx.execute(delete(template_parts).where(template_parts.c.path == part.path))
        tx.execute(insert(garbage).values(path=part.path, since=micros_now()))
    if replaced:
        first = int(replaced[0].numbers[0]) if replaced[0].rows else template.next_number
        in_replaced = gone_members.c.template_id == template.id, gone_members.c.number >= first
        tx.execute(delete(gone_members).where(*in_replaced))
    _increment_version(tx, template.id, template.next_number + added)


def _increment_version(tx: Connection, template_id: str, next_number: int | None = None) -> None:
    """Note that rows were added or removed."""
    head = template_heads.c
    values = {} if next_number is None else {"next_number": next_number}
    updated = tx.execute(
        update(template_heads).where(head.template_id == template_id).values(version=head.version + 1, **values)
    )
    if not updated.rowcount:
        # Registered by a version in which templates could not change.
        rows = select(templates.c.rows).where(templates.c.id == template_id).scalar_subquery()
        tx.execute(
            insert(template_heads).values({"template_id": template_id, "next_number": rows, "version": 1, **values})
        )


_mapped = lru_cache(maxsize=256)(read_table)
