"""The queries of a template: which rows of values are in which files, and which of them stand.

The rows that a template was registered with are its first file. Rows that were added are in further files, few however
often some are added: a new file takes the small ones before it along. A row's number is its place in the first file,
or stands beside it in a further one; it never changes, and is never given to another row. Rows that were removed are
noted, and left out of the next file that is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Connection, delete, insert, select, update

from tureen.handle import member_handle, parse_member
from tureen.language.spelling import sql_literals
from tureen.language.templates.member import MemberValues
from tureen.language.templates.template import read_template
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import garbage, gone_members, template_heads, template_parts, templates
from tureen.pot.queries import Registered, RegisteredInput, find_query, unknown
from tureen.pot.tablefile import read_table
from tureen.pot.templates import Template, find_template
from tureen.query import RelationKind

NUMBER, FIRST_ID = "_number", "_first_id"
"""Columns of a further file: a row's number, and the first tuple that it is matched with; NULL for its newest rows."""

Numbers = npt.NDArray[np.int64]


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
        """All that is in the file, mapped and not copied."""
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

    def place_of(self, number: int) -> int | None:
        """Where the row of that number is; None where it is not here."""
        place = int(np.searchsorted(self.numbers, number))
        return place if place < self.rows and self.numbers[place] == number else None


class Members(Sequence[int]):
    """The numbers of a template's queries that stand, ascending; and what they are."""

    def __init__(self, template: Template, parts: Sequence[Part], gone: Numbers) -> None:
        """The rows of these files, but for the ones that are gone."""
        self.template, self.parts, self.gone = template, tuple(parts), gone
        self._starts = np.cumsum([0, *(part.rows for part in parts)])

    def __len__(self) -> int:
        """How many stand."""
        return int(self._starts[-1]) - len(self.gone)

    def __getitem__(self, place: int | slice) -> Any:
        """The n-th number, or some; it does not list the others."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        wanted = place + len(self) if place < 0 else place
        if not 0 <= wanted < len(self):
            raise IndexError(f"the template has no query at {place}")
        row = wanted + int(np.searchsorted(self._gone_before, wanted, side="right"))
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return int(self.parts[part].numbers[row - self._starts[part]])

    @cached_property
    def _gone_before(self) -> Numbers:
        """For each row that is gone, how many before it stand."""
        rows = np.searchsorted(self.all_numbers, self.gone)
        standing: Numbers = rows - np.arange(len(rows))
        return standing

    @cached_property
    def all_numbers(self) -> Numbers:
        """The numbers of all rows in the files, whether they stand or not."""
        first, *more = (part.numbers for part in self.parts)
        return np.concatenate([first, *more]) if more else first

    @property
    def standing(self) -> Numbers:
        """The numbers of the queries that stand."""
        return self.all_numbers[~np.isin(self.all_numbers, self.gone)] if len(self.gone) else self.all_numbers

    def after(self, number: int) -> int:
        """The place of the first query with a greater number."""
        row = int(np.searchsorted(self.all_numbers, number, side="right"))
        return row - int(np.searchsorted(self.gone, number, side="right"))

    def __contains__(self, number: object) -> bool:
        """Whether the query of that number stands."""
        return isinstance(number, int) and self._row(number) is not None

    def _row(self, number: int) -> tuple[Part, int] | None:
        gone = int(np.searchsorted(self.gone, number))
        if gone < len(self.gone) and self.gone[gone] == number:
            return None
        for part in self.parts:
            place = part.place_of(number)
            if place is not None:
                return part, place
        return None

    def find(self, number: int) -> Registered | None:
        """The query of that number, as if it had been registered by itself and were lazy; None if it does not stand."""
        found = self._row(number)
        if found is None:
            return None
        template, (part, place) = self.template, found
        names = template.columns.names
        row = part.table.select(names).slice(place, 1).to_pylist()[0]
        return Registered(
            id=member_handle(template.id, number),
            name=None if template.name is None else member_handle(template.name, number),
            sql=read_template(template.sql).fill(sql_literals(template.columns, row)),
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
        firsts = np.concatenate([part.first_ids for part in self.parts])
        found: Numbers = firsts[np.searchsorted(self.all_numbers, numbers)]
        return found

    def labels(self, numbers: Numbers) -> list[Any]:
        """The labels of rows, by their numbers; None for all where the template has none."""
        if self.template.label is None:
            return [None] * len(numbers)
        labels: list[Any] = self.take([self.template.label], numbers).column(0).to_pylist()
        return labels

    def take(self, names: Sequence[str], numbers: Numbers) -> pa.Table:
        """Values of rows, by their numbers."""
        whole = pa.concat_tables([part.table.select(list(names)) for part in self.parts])
        return whole.take(pa.array(np.searchsorted(self.all_numbers, numbers)))


def load_members(tx: Connection, root: Path, template: Template, number: int | None = None) -> Members:
    """The queries of a template as they are in this transaction; with a number, good for looking that one up."""
    found = tx.execute(
        select(template_parts).where(template_parts.c.template_id == template.id).order_by(template_parts.c.id)
    )
    parts = [Part(root, row.path, row.rows, row.first_id) for row in found]
    gone = select(gone_members.c.number).where(gone_members.c.template_id == template.id)
    if number is not None:
        gone = gone.where(gone_members.c.number == number)
    numbers = np.sort(np.array(tx.execute(gone).scalars().all(), np.int64))
    return Members(template, [Part(root, template.path, template.rows), *parts], numbers)


def find_member(tx: Connection, root: Path, handle_or_name: str, owner: str | None = None) -> Registered | None:
    """The query of a template by its handle or name, or None."""
    member = parse_member(handle_or_name)
    template = None if member is None else find_template(tx, member.template, owner)
    if member is None or template is None:
        return None
    return load_members(tx, root, template, member.number).find(member.number)


def find_standing(tx: Connection, root: Path, handle_or_name: str, owner: str | None = None) -> Registered:
    """The query of that handle or name, whether it stands by itself or in a template."""
    return find_member(tx, root, handle_or_name, owner) or find_query(tx, handle_or_name, owner)


def drop_member(tx: Connection, root: Path, handle: str, owner: str | None = None) -> None:
    """Let one query of a template stand no longer."""
    query, member = find_member(tx, root, handle, owner), parse_member(handle)
    # By its handle only: a name may be another query's tomorrow.
    if query is None or member is None or query.id != handle or owner not in (None, query.owner):
        raise unknown(handle)
    remove_members(tx, member.template, [member.number])


def remove_members(tx: Connection, template_id: str, numbers: Sequence[int]) -> None:
    """Let queries of a template stand no longer, given the numbers of some that do."""
    if numbers:
        tx.execute(insert(gone_members), [{"template_id": template_id, "number": number} for number in numbers])
        _moved_on(tx, template_id)


def replace_parts(tx: Connection, members: Members, replaced: Sequence[Part], new: Part | None, added: int) -> None:
    """Put a file in the place of some, which are the last ones; `added` of its rows are new.

    Of the replaced files, rows that are gone are in no file any more.
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
        least = int(replaced[0].numbers[0]) if replaced[0].rows else template.next_number
        of_them = gone_members.c.template_id == template.id, gone_members.c.number >= least
        tx.execute(delete(gone_members).where(*of_them))
    _moved_on(tx, template.id, template.next_number + added)


def _moved_on(tx: Connection, template_id: str, next_number: int | None = None) -> None:
    """Note that rows came or went."""
    head = template_heads.c
    more = {} if next_number is None else {"next_number": next_number}
    changed = tx.execute(
        update(template_heads).where(head.template_id == template_id).values(version=head.version + 1, **more)
    )
    if not changed.rowcount:
        # Registered before templates changed.
        rows = select(templates.c.rows).where(templates.c.id == template_id).scalar_subquery()
        tx.execute(
            insert(template_heads).values({"template_id": template_id, "next_number": rows, "version": 1, **more})
        )


_mapped = lru_cache(maxsize=256)(read_table)
