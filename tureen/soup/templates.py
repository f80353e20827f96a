"""Templates: register, change, follow and unregister many queries of one shape."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tureen.arguments import check_name, check_text
from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError, UnknownQuery, nearest
from tureen.faults import crash_point
from tureen.handle import new_handle
from tureen.join import Field, field_name, parse_field
from tureen.language import bind_query
from tureen.language.binding.passes import bind_template_where
from tureen.language.spelling import sql_literals
from tureen.language.templates.template import columns_of_values, read_template, text_with_columns
from tureen.language.text.shapes import shape_of
from tureen.position import Position
from tureen.pot.catalog import Catalog, check_attempt, take_seq
from tureen.pot.files import new_attempt
from tureen.pot.functions import StoredFunctions, check_functions
from tureen.pot.members import Members, Part, load_members, remove_members, replace_parts
from tureen.pot.parts import missing_file
from tureen.pot.registered import LOCAL
from tureen.pot.registering import check_inputs
from tureen.pot.relations import Relations, StoredRelation, find_relation
from tureen.pot.status import describe_template
from tureen.pot.template_files import has_many_gone, write_added, write_first, write_remaining
from tureen.pot.templates import (
    Template,
    add_template,
    count_standing,
    drop_template,
    find_template,
    list_templates,
)
from tureen.pot.transaction import Transaction
from tureen.queries.template_compile import can_compile, compile_table
from tureen.query import Query
from tureen.results.groups.group_changes import GroupChanges
from tureen.results.invoke import Invoker
from tureen.results.query_names import QueryNames
from tureen.results.templates.pairing import NUMBER, CombinedPairing, IndexedPairing, JoinedPairing, Pairing
from tureen.results.templates.template_matches import TemplateMatches
from tureen.results.templates.template_rule import TemplateRule, without_values
from tureen.schema import INTEGRAL, Schema
from tureen.soup.remote_inputs import RemoteStreams, claimed_template_inputs, finding_remote
from tureen.soup.template_parameters import (
    added_values,
    check_outputs,
    check_standing,
    label_of,
    numbers_of,
    satisfying,
    values_of,
)

PAIRINGS = 256
"""The number of files of values whose index a process caches."""

Outcome = TypeVar("Outcome")


class Templates:
    """The templates of one pot."""

    def __init__(self, catalog: Catalog, invoker: Invoker) -> None:
        """Read and change the templates of that catalog."""
        self._catalog, self._invoker = catalog, invoker
        self._rules: BoundedCache[str, TemplateRule] = BoundedCache(PAIRINGS)
        self._pairings: BoundedCache[str, Pairing] = BoundedCache(PAIRINGS)
        self._change_lock = threading.Lock()
        self.remote: RemoteStreams | None = None
        """What receives streams of other servers, in a server."""

    def register(
        self, sql: str, params: Any, name: str | None, owner: str | None = None, label: str | None = None
    ) -> str:
        """Register a query for each row of parameters; return the template's handle."""
        text = read_template(check_text(sql, "a query's SQL"))
        if name is not None:
            name = check_name(name, "template")
        columns, values = values_of(text, params, None if label is None else check_text(label, "a label's column"))
        label_column = None if label is None else label_of(columns, label)
        template_id, attempt = new_handle(), new_attempt()
        relations = self._relations()
        query = self._check(sql, columns, values.slice(0, 1).to_pylist()[0], relations)
        part = write_first(self._catalog.root, template_id, attempt, values)
        with claimed_template_inputs(relations, query, self.remote) as inputs, self._catalog.write() as tx:
            check_attempt(tx, attempt)
            check_inputs(tx, inputs)
            check_functions(tx, relations.called.values())
            shape, owner = shape_of(sql).text, LOCAL if owner is None else owner
            new = Template(template_id, name, sql, shape, inputs, columns, part.path, part.rows, owner)
            add_template(tx, replace(new, label=label_column))
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return template_id

    def _check(self, sql: str, columns: Schema, row: Mapping[str, Any], relations: Relations) -> Query:
        """Raise if the queries cannot be registered; return the first of them."""
        text = read_template(sql)
        with text.filled(sql_literals(columns, row)) as filled:
            query = bind_query(filled, relations.describe, functions=relations.function)
        with text.filled(columns_of_values(columns)) as filled:
            bind_template_where(filled, relations.describe, columns, functions=relations.function)
        if not text.only_where:
            # With integers of one digit: the type of an expression of a DECIMAL and an integer depends on its digits.
            shortest = {
                column.name: 0 if column.type.kind in INTEGRAL else row[column.name] for column in columns.columns
            }
            with text.filled(sql_literals(columns, shortest)) as filled:
                other = bind_query(filled, relations.describe, functions=relations.function)
            with text.filled(columns_of_values(columns)) as filled:
                with_columns = bind_query(filled, relations.describe, columns, functions=relations.function)
                check_outputs(with_columns, query, other)
        return query

    def _relations(self) -> Relations:
        """The streams and tables of the catalog."""

        def find(name: str) -> StoredRelation:
            with self._catalog.read() as tx:
                return find_relation(tx, name)

        return Relations(finding_remote(find, self.remote), StoredFunctions(self._catalog.read))

    def find(self, handle_or_name: str, owner: str | None = None) -> Template:
        """The template of that handle or name."""
        with self._catalog.read() as tx:
            return self._find(tx, check_text(handle_or_name, "a template's name"), owner)

    def _find(self, tx: Transaction, handle_or_name: str, owner: str | None) -> Template:
        template = find_template(tx, handle_or_name, owner)
        if template is None:
            owned = list_templates(tx, LOCAL if owner is None else owner)
            names = [candidate.name for candidate in owned if candidate.name is not None]
            raise UnknownQuery(f"there is no template '{handle_or_name}'", hint=nearest(handle_or_name, names))
        return template

    def members(self, handle: str, owner: str | None = None) -> Members:
        """The queries of a template, as of the latest commit."""
        self._invoker.view.refresh()
        members = self._invoker.view.members(check_text(handle, "a handle"))
        if members is None or members.template.id != handle or not _is_visible(owner, members.template):
            with self._catalog.read() as tx:
                members = load_members(tx, self._catalog.root, self._find(tx, handle, owner))
        return members

    def add(self, handle: str, rows: Any, owner: str | None = None) -> range:
        """Register a query for each row of parameters; return their numbers."""
        with self._change_lock:
            values = added_values(self.find(handle, owner).columns, rows)
            return self._retry(handle, owner, lambda members: self._add(members, values))

    def _add(self, members: Members, values: pa.RecordBatch) -> range | None:
        template, attempt = members.template, new_attempt()
        part, replaced = write_added(members, attempt, values)
        first_ids = self._invoker.next_ids(template.stream_ids)
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            if not _is_unchanged(tx, template):
                return None
            take_seq(tx)
            replace_parts(tx, members, replaced, replace(part, first_ids=first_ids), values.num_rows)
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
        """Unregister queries of a template; return how many were removed."""
        if (numbers is None) == (where is None):
            raise TureenError("either numbers or where must be given", hint="remove([3, 4]), or remove(where={…})")
        checked = None if numbers is None else numbers_of(numbers)
        with self._change_lock:
            return self._retry(handle, owner, lambda members: self._remove(members, checked, where))

    def _remove(self, members: Members, numbers: Sequence[int] | None, where: Mapping[str, Any] | None) -> int | None:
        removed = satisfying(members, where or {}) if numbers is None else check_standing(members, numbers)
        attempt, remaining = new_attempt(), None
        if has_many_gone(members, len(removed)):
            gone = np.sort(np.concatenate([members.gone, np.array(removed, np.int64)]))
            remaining = write_remaining(Members(members.template, members.parts, gone), attempt)
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            if not _is_unchanged(tx, members.template):
                return None
            take_seq(tx)
            if remaining is None:
                remove_members(tx, members.template.id, removed)
            else:
                replace_parts(tx, members, members.parts, remaining, 0)
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return len(removed)

    def _retry(self, handle: str, owner: str | None, change: Callable[[Members], Outcome | None]) -> Outcome:
        """The result of a change, which is repeated if another change was committed first."""
        attempts = 5
        while True:
            with self._catalog.read() as tx:
                template = self._find(tx, handle, owner)
                if owner not in (None, template.owner):
                    raise UnknownQuery(
                        f"there is no template '{handle}'", hint="only the owner of a template can change it"
                    )
                members = load_members(tx, self._catalog.root, template)
            try:
                outcome = change(members)
            except FileNotFoundError as error:
                # Its files were merged and swept after they were looked up.
                attempts -= 1
                if not attempts:
                    raise missing_file(error) from error
                continue
            if outcome is not None:
                return outcome

    def drop(self, handle: str, owner: str | None = None) -> None:
        """Unregister a template and all its queries."""
        with self._catalog.write() as tx:
            template = find_template(tx, handle, owner)
            if template is None or owner not in (None, template.owner):
                raise UnknownQuery(f"there is no template '{handle}'", hint="it was unregistered before")
            drop_template(tx, template.id)

    def describe(self, owner: str | None = None, *, with_shared: bool = True) -> list[tuple[Template, int]]:
        """The templates of an owner, or of all, and the number of their queries; `with_shared` adds shared ones."""
        with self._catalog.read() as tx:
            templates = list_templates(tx, owner, with_shared=with_shared)
            return [(template, count_standing(tx, template.id)) for template in templates]

    def matches(
        self,
        handle: str,
        since: Position | None,
        owner: str | None = None,
        until: Mapping[int, int] | None = None,
    ) -> TemplateMatches:
        """The rows that joined the answers of a template's queries since a position; see `Invoker.new_rows`."""
        template = self.find(handle, owner)
        return self._invoker.template_matches(self._rule(template), since, until)

    def has_groups(self, handle: str, owner: str | None = None) -> bool:
        """Whether the queries of a template have groups, whose changes `group_changes` reads."""
        return self._rule(self.find(handle, owner)).query.grouping is not None

    def group_changes(
        self,
        handle: str,
        since: Position | None,
        only_turns: bool,
        owner: str | None = None,
        feed_end: Position | None = None,
    ) -> GroupChanges:
        """The changes of the answers of a template's queries with groups; see `Invoker.group_changes`."""
        rule = self._rule(self.find(handle, owner))
        return self._invoker.template_group_changes(rule, since, only_turns, feed_end)

    def explain(self, handle: str, owner: str | None = None) -> dict[str, Any]:
        """How a template's queries are matched with new rows."""
        members = self.members(handle, owner)
        template = members.template
        description = describe_template(template, len(members))
        query = without_values(self._rule(template).query)
        names = QueryNames(query)
        matching = self._pairing(members).describe(names.column)
        if query.joins:
            matching["join"] = names.tree(query.source)
        return {**description, "shape": template.shape, "matching": matching}

    def _rule(self, template: Template) -> TemplateRule:
        def create() -> TemplateRule:
            relations = self._relations()
            query = _bound(template.sql, template.columns, relations)
            return TemplateRule(template, query, self._pairing, relations.schema)

        return self._rules.get(template.id, create)

    def _pairing(self, members: Members) -> Pairing:
        """The pairing of a template's values. Files never change, so only new ones are compiled."""
        template = members.template
        pairings = [
            self._pairings.get(part.path, lambda part=part: self._pairing_of(template, part))  # type: ignore[misc]
            for part in members.parts
        ]
        return pairings[0] if len(pairings) == 1 else CombinedPairing(pairings)

    def _pairing_of(self, template: Template, part: Part) -> Pairing:
        columns, relations = template.columns, self._relations()
        text = text_with_columns(template.sql, columns)
        where = bind_template_where(text, relations.describe, columns, functions=relations.function)
        values = part.table.select(list(columns.names))
        if where.slots:
            stored = self._rule(template).fields(sorted({slot.column for slot in where.slots}))
            if can_compile(where.slots, stored, values):
                return IndexedPairing(compile_table(where.slots, stored, values, part.numbers))
        values_input = len(template.inputs)
        names = [field_name(Field(values_input, name)) for name in columns.names]
        numbered = values.rename_columns(names).append_column(NUMBER, pa.array(part.numbers))
        used = () if where.with_parameters is None else where.with_parameters.columns
        read = [name for name in used if parse_field(name).input != values_input]
        return JoinedPairing(where.with_parameters, numbered, read)


def _bound(sql: str, columns: Schema, relations: Relations) -> Query:
    """A template as a join of its streams and tables with VALUES."""
    return bind_query(text_with_columns(sql, columns), relations.describe, columns, functions=relations.function)


def _is_visible(owner: str | None, template: Template) -> bool:
    return owner is None or template.owner == owner or template.shared


def _is_unchanged(tx: Transaction, template: Template) -> bool:
    """Whether no row was added or removed since the template was read."""
    current = find_template(tx, template.id)
    return current is not None and current.version == template.version
