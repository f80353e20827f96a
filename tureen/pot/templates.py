"""Templates in the catalog: many queries of one shape, as one row and files of values.

Each row of values is a query. Its handle is the template's, a dot and the row's number, so that a million queries need
only a million rows of values. `tureen/pot/members.py` describes the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Select, and_, delete, func, insert, or_, select, update

from tureen.errors import UnknownQuery
from tureen.pot.catalog import micros_now, take_seq
from tureen.pot.catalog_tables import garbage, query_inputs
from tureen.pot.queries import check_free
from tureen.pot.registered import LOCAL, RegisteredInput
from tureen.pot.template_tables import gone_members, template_heads, template_part_ids, template_parts, templates
from tureen.pot.transaction import Transaction
from tureen.query import RelationKind
from tureen.schema import Schema, name_key


@dataclass(frozen=True, slots=True)
class Template:
    """A template as the catalog has it."""

    id: str
    name: str | None
    sql: str
    shape: str
    inputs: tuple[RegisteredInput, ...]
    """The streams and tables of FROM; its last input is VALUES."""
    columns: Schema
    path: str
    """The file of its first rows of values."""
    rows: int
    """The number of rows in that file."""
    owner: str = LOCAL
    shared: bool = False
    seq: int = 0
    registered_at: int = 0
    label: str | None = None
    """The column of the parameters that is returned with each change."""
    next_number: int = 0
    version: int = 0
    """Increased whenever rows are added or removed."""

    @property
    def stream_ids(self) -> tuple[int, ...]:
        """The streams that its queries read, each once."""
        return tuple(dict.fromkeys(entry.stream_id for entry in self.inputs if entry.stream_id is not None))

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The tables that its queries read, each once."""
        return tuple(dict.fromkeys(entry.table_id for entry in self.inputs if entry.table_id is not None))


def add_template(tx: Transaction, new: Template) -> None:
    """Register all queries of a template, whose file of values is durable."""
    if new.name is not None:
        check_free(tx, new.owner, new.name)
    tx.execute(
        insert(templates).values(
            id=new.id,
            owner=new.owner,
            shared=new.shared,
            name=new.name,
            name_key=None if new.name is None else name_key(new.name),
            sql=new.sql,
            shape=new.shape,
            columns=new.columns.sql,
            path=new.path,
            rows=new.rows,
            seq=take_seq(tx),
            registered_at=micros_now(),
        )
    )
    inputs = [
        {
            "query_id": new.id,
            "number": number,
            "kind": entry.kind.value,
            "stream_id": entry.stream_id,
            "table_id": entry.table_id,
            "needs": entry.needs,
        }
        for number, entry in enumerate((*new.inputs, RegisteredInput(RelationKind.VALUES)))
    ]
    tx.execute(insert(query_inputs), inputs)
    tx.execute(insert(template_heads).values(template_id=new.id, next_number=new.rows, version=0, label=new.label))


_TEMPLATES = (
    select(
        templates,
        query_inputs.c.kind,
        query_inputs.c.stream_id,
        query_inputs.c.table_id,
        template_heads.c.label,
        template_heads.c.next_number,
        template_heads.c.version,
    )
    .select_from(templates.outerjoin(template_heads, template_heads.c.template_id == templates.c.id))
    .join(query_inputs, query_inputs.c.query_id == templates.c.id)
    .where(query_inputs.c.kind != RelationKind.VALUES.value)
    .order_by(templates.c.seq, templates.c.id, query_inputs.c.number)
)
"""Templates with one row for each of their streams and tables, in order."""


def find_template(tx: Transaction, handle_or_name: str, owner: str | None = None) -> Template | None:
    """The template of a handle, or of a name of its owner, or None; others' only by handle, and if they are shared."""
    name_owner = LOCAL if owner is None else owner
    by_handle = templates.c.id == handle_or_name
    if owner is not None:
        by_handle &= or_(templates.c.owner == owner, templates.c.shared)
    by_name = and_(templates.c.owner == name_owner, templates.c.name_key == name_key(handle_or_name))
    return next(_grouped(tx.execute(_TEMPLATES.where(or_(by_handle, by_name)))), None)


def list_templates(tx: Transaction, owner: str | None = None, *, with_shared: bool = False) -> list[Template]:
    """All templates in order of registration, or an owner's; `with_shared` adds those that others share."""
    statement = _TEMPLATES
    if owner is not None:
        visible = templates.c.owner == owner
        statement = statement.where(or_(visible, templates.c.shared) if with_shared else visible)
    return list(_grouped(tx.execute(statement)))


def share_template(tx: Transaction, template_id: str, shared: bool) -> None:
    """Make a template and its queries visible to others, or private again."""
    tx.execute(update(templates).where(templates.c.id == template_id).values(shared=shared))


def drop_template(tx: Transaction, template_id: str) -> None:
    """Unregister all queries of a template."""
    row = tx.execute(delete(templates).where(templates.c.id == template_id).returning(templates.c.path)).first()
    if row is None:
        raise UnknownQuery(f"there is no template '{template_id}'", hint="it was unregistered before")
    take_seq(tx)
    added = delete(template_parts).where(template_parts.c.template_id == template_id).returning(template_parts.c.path)
    paths = [row.path, *tx.execute(added).scalars()]
    for table in (gone_members, template_heads, template_part_ids):
        tx.execute(delete(table).where(table.c.template_id == template_id))
    tx.execute(delete(query_inputs).where(query_inputs.c.query_id == template_id))
    tx.execute(insert(garbage), [{"path": path, "since": micros_now()} for path in paths])


def count_members_of_shape(tx: Transaction, shape: str) -> int:
    """The number of queries of that shape in templates."""
    return _count(tx, _total(templates.c.shape == shape))


def count_members(tx: Transaction, owner: str | None = None) -> int:
    """The number of standing queries of all templates, or of an owner's."""
    return _count(tx, _ALL if owner is None else _total(templates.c.owner == owner))


def count_standing(tx: Transaction, template_id: str) -> int:
    """The number of standing queries of a template."""
    return _count(tx, _total(templates.c.id == template_id))


def _total(condition: Any) -> Select[Any]:
    """The number of rows in the files of the templates that satisfy a condition, without removed rows."""
    rows = select(func.coalesce(func.sum(templates.c.rows), 0)).where(condition)
    same_template = templates.c.id == template_parts.c.template_id
    added = select(func.coalesce(func.sum(template_parts.c.rows), 0)).join(templates, same_template).where(condition)
    same_template = templates.c.id == gone_members.c.template_id
    gone = select(func.count()).select_from(gone_members).join(templates, same_template).where(condition)
    return select(rows.scalar_subquery() + added.scalar_subquery() - gone.scalar_subquery())


_ALL = _total(True)


def _count(tx: Transaction, total: Select[Any]) -> int:
    return int(tx.execute(total).scalar_one())


def _grouped(rows: Iterable[Any]) -> Iterator[Template]:
    """Templates from their inputs' rows."""
    for _, group in groupby(rows, key=lambda row: row.id):
        yield _template(list(group))


def _template(rows: Sequence[Any]) -> Template:
    row = rows[0]
    return Template(
        id=row.id,
        name=row.name,
        sql=row.sql,
        shape=row.shape,
        inputs=tuple(
            RegisteredInput(RelationKind(input_row.kind), input_row.stream_id, input_row.table_id) for input_row in rows
        ),
        columns=Schema.parse(row.columns),
        path=row.path,
        rows=row.rows,
        owner=row.owner,
        shared=row.shared,
        seq=row.seq,
        registered_at=row.registered_at,
        label=row.label,
        next_number=row.rows if row.next_number is None else row.next_number,
        version=row.version or 0,
    )
