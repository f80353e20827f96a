"""Templates as their owners use them: many queries of one shape, registered, followed and let go of together."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection

from tureen.arguments import check_name, check_text
from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError, UnknownQuery, nearest
from tureen.faults import crash_point
from tureen.language import bind_query
from tureen.language.binding.passes import bind_where_only
from tureen.language.predicates.slots import slots_of
from tureen.language.spelling import sql_literals
from tureen.language.templates.template import read_template, text_with_columns
from tureen.language.text.shapes import shape_of
from tureen.position import Position
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.members import Members, Part, load_members, remove_members, replace_parts
from tureen.pot.parts import missing_file
from tureen.pot.queries import LOCAL
from tureen.pot.status import describe_template
from tureen.pot.stream_cache import StreamCache
from tureen.pot.streams import stream_by_id
from tureen.pot.template_files import has_many_gone, write_added, write_first, write_remaining
from tureen.pot.templates import (
    Template,
    add_template,
    count_standing,
    drop_template,
    find_template,
    list_templates,
)
from tureen.queries.template_compile import can_compile, compile_table
from tureen.query import VALUES_INPUT, Field, Query, field_name, parse_field
from tureen.results.invoke import Invoker
from tureen.results.pairing import NUMBER, Indexed, Joined, Pairing, Parts
from tureen.results.template_matches import TemplateMatches, TemplateRule
from tureen.schema import INTEGRAL, Schema
from tureen.soup.template_parameters import (
    added_values,
    check_outputs,
    label_of,
    numbers_of,
    satisfying,
    standing,
    values_of,
)

PAIRINGS = 256
"""Of how many files of values a process keeps the index."""

Outcome = TypeVar("Outcome")


class Templates:
    """The templates of one pot."""

    def __init__(self, catalog: Catalog, streams: StreamCache, invoker: Invoker) -> None:
        """Work on the templates of that catalog."""
        self._catalog, self._streams, self._invoker = catalog, streams, invoker
        self._rules: BoundedCache[str, TemplateRule] = BoundedCache(PAIRINGS)
        self._pairings: BoundedCache[str, Pairing] = BoundedCache(PAIRINGS)
        self._changing = threading.Lock()

    def register(
        self, sql: str, params: Any, name: str | None, owner: str | None = None, label: str | None = None
    ) -> str:
        """Let a query stand for each row of parameters; return the template's handle."""
        text = read_template(check_text(sql, "a query's SQL"))
        if name is not None:
            name = check_name(name, "template")
        columns, values = values_of(text, params, None if label is None else check_text(label, "a label's column"))
        called = None if label is None else label_of(columns, label)
        template_id, attempt = uuid.uuid4().hex, new_attempt()
        stream_id = self._check(sql, columns, values.slice(0, 1).to_pylist()[0])
        part = write_first(self._catalog.root, template_id, attempt, values)
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            shape, whose = shape_of(sql).text, LOCAL if owner is None else owner
            new = Template(template_id, name, sql, shape, stream_id, columns, part.path, part.rows, whose)
            add_template(tx, replace(new, label=called))
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return template_id

    def _check(self, sql: str, columns: Schema, row: Mapping[str, Any]) -> int:
        """Raise where the queries cannot stand; return the id of their stream."""
        text = read_template(sql)
        query = bind_query(text.fill(sql_literals(columns, row)), self._streams.describe)
        bind_where_only(text_with_columns(sql, columns), self._streams.describe, columns)
        if not text.only_where:
            # Integers of one digit: beside a DECIMAL, the type of a result would depend on each of them.
            plain = {column.name: 0 if column.type.kind in INTEGRAL else row[column.name] for column in columns.columns}
            least = bind_query(text.fill(sql_literals(columns, plain)), self._streams.describe)
            check_outputs(self._bound(sql, columns), query, least)
        return self._streams.find(query.stream.relation).stream.id

    def _bound(self, sql: str, columns: Schema) -> Query:
        """A template as a join of its stream with VALUES."""
        return bind_query(text_with_columns(sql, columns), self._streams.describe, columns)

    def find(self, handle_or_name: str, owner: str | None = None) -> Template:
        """The template of that handle or name."""
        with self._catalog.read() as tx:
            return self._find(tx, check_text(handle_or_name, "a template's name"), owner)

    def _find(self, tx: Connection, handle_or_name: str, owner: str | None) -> Template:
        found = find_template(tx, handle_or_name, owner)
        if found is None:
            mine = list_templates(tx, LOCAL if owner is None else owner)
            known = [one.name for one in mine if one.name is not None]
            raise UnknownQuery(f"there is no template '{handle_or_name}'", hint=nearest(handle_or_name, known))
        return found

    def members(self, handle: str, owner: str | None = None) -> Members:
        """The queries of a template that stand, as they are now."""
        self._invoker.view.refresh()
        members = self._invoker.view.members(check_text(handle, "a handle"))
        if members is None or members.template.id != handle or not _sees(owner, members.template):
            with self._catalog.read() as tx:
                members = load_members(tx, self._catalog.root, self._find(tx, handle, owner))
        return members

    def add(self, handle: str, rows: Any, owner: str | None = None) -> range:
        """Let a query stand for each of some more rows of parameters; return their numbers."""
        with self._changing:
            values = added_values(self.find(handle, owner).columns, rows)
            return self._changed(handle, owner, lambda members: self._add(members, values))

    def _add(self, members: Members, values: pa.RecordBatch) -> range | None:
        template, attempt = members.template, new_attempt()
        part, replaced = write_added(members, attempt, values)
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            if not _is_same(tx, template):
                return None
            stream = stream_by_id(tx, template.stream_id)
            assert stream is not None, "a dropped stream takes its templates along"
            take_seq(tx)
            replace_parts(tx, members, replaced, replace(part, first_id=stream.next_id), values.num_rows)
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return range(template.next_number, template.next_number + values.num_rows)

    def remove(
        self,
        handle: str,
        numbers: int | Iterable[int] | None,
        where: Mapping[str, Any] | None,
        owner: str | None = None,
    ) -> int:
        """Let some queries of a template stand no longer; return how many they were."""
        if (numbers is None) == (where is None):
            raise TureenError("either numbers or where must be given", hint="remove([3, 4]), or remove(where={…})")
        wanted = None if numbers is None else numbers_of(numbers)
        with self._changing:
            return self._changed(handle, owner, lambda members: self._remove(members, wanted, where))

    def _remove(self, members: Members, numbers: Sequence[int] | None, where: Mapping[str, Any] | None) -> int | None:
        going = satisfying(members, where or {}) if numbers is None else standing(members, numbers)
        attempt, remaining = new_attempt(), None
        if has_many_gone(members, len(going)):
            gone = np.sort(np.concatenate([members.gone, np.array(going, np.int64)]))
            remaining = write_remaining(Members(members.template, members.parts, gone), attempt)
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            if not _is_same(tx, members.template):
                return None
            take_seq(tx)
            if remaining is None:
                remove_members(tx, members.template.id, going)
            else:
                replace_parts(tx, members, members.parts, remaining, 0)
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return len(going)

    def _changed(self, handle: str, owner: str | None, change: Callable[[Members], Outcome | None]) -> Outcome:
        """What a change returns, tried again where another one was committed before it."""
        patience = 5
        while True:
            with self._catalog.read() as tx:
                template = self._find(tx, handle, owner)
                if owner not in (None, template.owner):
                    raise UnknownQuery(f"there is no template '{handle}'", hint="others' templates are not changed")
                members = load_members(tx, self._catalog.root, template)
            try:
                outcome = change(members)
            except FileNotFoundError as error:
                # Its files were merged away and swept since they were looked up.
                patience -= 1
                if not patience:
                    raise missing_file(error) from error
                continue
            if outcome is not None:
                return outcome

    def drop(self, handle: str, owner: str | None = None) -> None:
        """Let all queries of a template stand no longer."""
        with self._catalog.write() as tx:
            found = find_template(tx, handle, owner)
            if found is None or owner not in (None, found.owner):
                raise UnknownQuery(f"there is no template '{handle}'", hint="it was unregistered before")
            drop_template(tx, found.id)

    def describe(self, owner: str | None = None, *, with_shared: bool = True) -> list[tuple[Template, int]]:
        """All templates, or an owner's, perhaps with what others share, and the number of their queries that stand."""
        with self._catalog.read() as tx:
            listed = list_templates(tx, owner, with_shared=with_shared)
            return [(one, count_standing(tx, one.id)) for one in listed]

    def matches(self, handle: str, since: Position | None, owner: str | None = None) -> TemplateMatches:
        """The rows that joined the answers of a template's queries since a position."""
        template = self.find(handle, owner)
        return self._invoker.template_matches(self._rule(template), template.id, since)

    def explain(self, handle: str, owner: str | None = None) -> dict[str, Any]:
        """How a template's queries are matched with new rows."""
        members = self.members(handle, owner)
        template = members.template
        about = describe_template(template, len(members))
        return {**about, "shape": template.shape, "matching": self._pairing(members).describe()}

    def _rule(self, template: Template) -> TemplateRule:
        def make() -> TemplateRule:
            return TemplateRule(template.stream_id, self._bound(template.sql, template.columns), self._pairing)

        return self._rules.get(template.id, make)

    def _pairing(self, members: Members) -> Pairing:
        """How the rows of each file are found; a file never changes, so only new ones are compiled."""
        template = members.template
        parts = [
            self._pairings.get(part.path, lambda part=part: self._of_part(template, part))  # type: ignore[misc]
            for part in members.parts
        ]
        return parts[0] if len(parts) == 1 else Parts(parts)

    def _of_part(self, template: Template, part: Part) -> Pairing:
        columns = template.columns
        where = bind_where_only(text_with_columns(template.sql, columns), self._streams.describe, columns)
        _, schema = self._streams.describe_id(template.stream_id)
        values = part.table.select(list(columns.names))
        of_stream, of_values = where.conditions.clauses
        slots = None if of_values else slots_of(where.conditions.joins)
        common = () if slots is None else of_stream
        if slots and can_compile(slots, schema.stored, values):
            return Indexed(compile_table(slots, schema.stored, values, part.numbers), common)
        fields = map(parse_field, () if where.expression is None else where.expression.columns)
        read = [field.column for field in fields if field.input == 0]
        names = [field_name(Field(VALUES_INPUT, name)) for name in columns.names]
        numbered = values.rename_columns(names).append_column(NUMBER, pa.array(part.numbers))
        return Joined(where.expression, numbered, read, common)


def _sees(owner: str | None, template: Template) -> bool:
    return owner is None or template.owner == owner or template.shared


def _is_same(tx: Connection, template: Template) -> bool:
    """Whether no row came or went since the template was read."""
    found = find_template(tx, template.id)
    return found is not None and found.version == template.version
