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
from sqlalchemy import delete, insert, select, update

from tureen.handle import member_handle, parse_member
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage
from tureen.pot.queries import find_query, unknown
from tureen.pot.registered import MemberValues, Registered
from tureen.pot.tablefile import read_table
from tureen.pot.template_tables import gone_members, template_heads, template_part_ids, template_parts, templates
from tureen.pot.templates import Template, find_template
from tureen.pot.transaction import Transaction
from tureen.schema import Schema

NUMBER = "_number"
"""The column of a further file with a row's number."""

Numbers = npt.NDArray[np.int64]

MemberText = Callable[[str, Schema, Mapping[str, Any]], str]
"""Writes the text of a query, given its template's text, the columns of its parameters, and their values."""


def first_id_column(index: int) -> str:
    """The column of a further file with the first tuple that a row is matched with, NULL in its newest rows.

    There is one for each stream of the template; `index` is the stream's.
    """
    return f"_first_id{index}" if index else "_first_id"


@dataclass(frozen=True)
class Part:
    """A file of values."""

    root: Path
    path: str
    rows: int
    first_ids: tuple[int, ...] = ()
    """The first tuple of each stream that its newest rows are matched with."""

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

    @property
    def has_first_ids(self) -> bool:
        """Whether some of its rows were added to the template later."""
        return first_id_column(0) in self.table.column_names

    def first_ids_of(self, index: int) -> Numbers:
        """The first tuple of a stream that each row is matched with."""
        if not self.has_first_ids:
            return np.broadcast_to(np.int64(0), (self.rows,))
        column = self.table.column(first_id_column(index))
        firsts: Numbers = (column.fill_null(self.first_ids[index]) if self.first_ids else column).to_numpy()
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
            inputs=template.inputs,
            seq=template.seq,
            registered_at=template.registered_at,
            owner=template.owner,
            shared=template.shared,
            label=None if template.label is None else row[template.label],
            values=MemberValues(template.id, template.sql, template.columns, row),
        )

    def added_before(self, numbers: Numbers, tuple_ids: Sequence[Numbers]) -> npt.NDArray[np.bool_]:
        """Whether queries were added before tuples that they are matched with, one of them at least.

        `tuple_ids` has for each stream of the template a tuple for each of the numbers.
        """
        if not any(part.has_first_ids for part in self.parts):
            return np.ones(len(numbers), np.bool_)
        rows = np.searchsorted(self.all_numbers, numbers)
        before = np.zeros(len(numbers), np.bool_)
        for ids, firsts in zip(tuple_ids, self._first_ids, strict=True):
            before |= ids >= firsts[rows]
        return before

    @cached_property
    def _first_ids(self) -> list[Numbers]:
        """For each stream, the first tuple that each row is matched with."""
        indexes = range(len(self.template.stream_ids))
        return [np.concatenate([part.first_ids_of(index) for part in self.parts]) for index in indexes]

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


def load_members(tx: Transaction, root: Path, template: Template, number: int | None = None) -> Members:
    """The queries of a template as of this transaction; with `number`, valid only for finding that query."""
    rows = tx.execute(
        select(template_parts).where(template_parts.c.template_id == template.id).order_by(template_parts.c.id)
    )
    further = _further_first_ids(tx, template)
    parts = [Part(root, row.path, row.rows, (row.first_id, *further.get(row.path, ()))) for row in rows]
    gone = select(gone_members.c.number).where(gone_members.c.template_id == template.id)
    if number is not None:
        gone = gone.where(gone_members.c.number == number)
    numbers = np.sort(np.array(tx.execute(gone).scalars(), np.int64))
    return Members(template, [Part(root, template.path, template.rows), *parts], numbers)


def _further_first_ids(tx: Transaction, template: Template) -> dict[str, list[int]]:
    """By the path of a file, the first tuples of the template's second and further streams."""
    others = template.stream_ids[1:]
    if not others:
        return {}
    ids = template_part_ids.c
    rows = tx.execute(select(ids.path, ids.stream_id, ids.first_id).where(ids.template_id == template.id)).all()
    by_stream = {(row.path, row.stream_id): row.first_id for row in rows}
    return {row.path: [by_stream[row.path, stream_id] for stream_id in others] for row in rows}


def find_standing(
    tx: Transaction, root: Path, handle_or_name: str, text_of: MemberText, owner: str | None = None
) -> Registered:
    """The query of that handle or name, separate or of a template."""
    member = parse_member(handle_or_name)
    template = None if member is None else find_template(tx, member.template, owner)
    query = None
    if member is not None and template is not None:
        query = load_members(tx, root, template, member.number).find(member.number, text_of)
    return query or find_query(tx, handle_or_name, owner)


def drop_member(tx: Transaction, root: Path, handle: str, owner: str | None = None) -> None:
    """Unregister a query of a template."""
    member = parse_member(handle)
    template = None if member is None else find_template(tx, member.template, owner)
    # By its handle only: another query may take the name.
    if member is None or template is None or member_handle(template.id, member.number) != handle:
        raise unknown(handle)
    if owner not in (None, template.owner) or member.number not in load_members(tx, root, template, member.number):
        raise unknown(handle)
    remove_members(tx, template.id, [member.number])


def remove_members(tx: Transaction, template_id: str, numbers: Sequence[int]) -> None:
    """Unregister queries of a template, given the numbers of standing ones."""
    if numbers:
        tx.execute(insert(gone_members), [{"template_id": template_id, "number": number} for number in numbers])
        _increment_version(tx, template_id)


def replace_parts(tx: Transaction, members: Members, replaced: Sequence[Part], new: Part | None, added: int) -> None:
    """Replace the last files, if any, by a new one, `added` of whose rows are new.

    Removed rows of the replaced files are then in no file.
    """
    template = members.template
    if new is not None and len(replaced) == len(members.parts):
        tx.execute(update(templates).where(templates.c.id == template.id).values(path=new.path, rows=new.rows))
    elif new is not None:
        first_id, *further = new.first_ids or (0,)
        of_part = {"template_id": template.id, "path": new.path}
        tx.execute(insert(template_parts).values({**of_part, "rows": new.rows, "first_id": first_id}))
        for stream_id, first_id in zip(template.stream_ids[1:], further, strict=True):
            tx.execute(insert(template_part_ids).values({**of_part, "stream_id": stream_id, "first_id": first_id}))
    for part in replaced:
        for table in (template_parts, template_part_ids):
            tx.execute(delete(table).where(table.c.path == part.path))
        tx.execute(insert(garbage).values(path=part.path, since=micros_now()))
    if replaced:
        first = int(replaced[0].numbers[0]) if replaced[0].rows else template.next_number
        in_replaced = gone_members.c.template_id == template.id, gone_members.c.number >= first
        tx.execute(delete(gone_members).where(*in_replaced))
    _increment_version(tx, template.id, template.next_number + added)


def _increment_version(tx: Transaction, template_id: str, next_number: int | None = None) -> None:
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
