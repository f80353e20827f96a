"""Templates as their owners use them: many queries of one shape, registered, followed and let go of together."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tureen.arguments import check_name, check_text
from tureen.errors import InvalidRows, TureenError, UnknownQuery, nearest
from tureen.faults import crash_point
from tureen.language import bind_query
from tureen.language.query import bind_clause, bind_where
from tureen.language.shapes import shape_of
from tureen.language.slots import slots_of
from tureen.language.template import PARAMETER, Lookup, TemplateText, read_template, with_parameters
from tureen.pot.catalog import Catalog, check_attempt
from tureen.pot.files import new_attempt
from tureen.pot.named import NamedStreams
from tureen.pot.position import Position
from tureen.pot.queries import LOCAL
from tureen.pot.status import describe_template
from tureen.pot.tablefile import write_table
from tureen.pot.templates import (
    Template,
    add_template,
    drop_template,
    find_template,
    gone,
    list_templates,
    spelt,
    standing_numbers,
)
from tureen.queries.tabular import can_compile, compile_table
from tureen.query import Expression
from tureen.results.invoke import Invoker
from tureen.results.matches import Matches
from tureen.results.pairing import NUMBER, Indexed, Joined, Pairing
from tureen.results.view import Cache
from tureen.schema import Schema
from tureen.stems.tabular import content_of

PAIRINGS = 64
"""Of how many templates a process keeps the index of their values."""


class Templates:
    """The templates of one pot."""

    def __init__(self, catalog: Catalog, streams: NamedStreams, invoker: Invoker) -> None:
        """Work on the templates of that catalog."""
        self._catalog, self._streams, self._invoker = catalog, streams, invoker
        self._pairings: Cache[Pairing] = Cache(PAIRINGS)

    def register(self, sql: str, params: Any, name: str | None, owner: str | None = None) -> str:
        """Let a query stand for each row of parameters; return the template's handle."""
        text = read_template(check_text(sql, "a query's SQL"))
        if name is not None:
            check_name(name, "template")
        columns, values = _values(text, params)
        template_id, attempt = uuid.uuid4().hex, new_attempt()
        path = f"templates/{attempt}-{template_id}.arrow"
        first = text.fill(spelt(columns, values.slice(0, 1).to_pylist()[0]))
        stream_id = self._streams.find(bind_query(first, self._streams.describe).stream).stream.id
        self._condition(sql, columns)
        crash_point("template.before_write")
        write_table(self._catalog.root / path, values)
        crash_point("template.before_commit")
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            shape, whose = shape_of(sql).text, LOCAL if owner is None else owner
            add_template(tx, Template(template_id, name, sql, shape, stream_id, columns, path, values.num_rows, whose))
            crash_point("template.in_commit")
        crash_point("template.after_commit")
        return template_id

    def _condition(self, sql: str, columns: Schema) -> Expression | None:
        """The WHERE clause over a row of the stream and a row of values."""
        return bind_where(*self._with_columns(sql, columns))

    def _with_columns(self, sql: str, columns: Schema) -> tuple[str, Lookup]:
        """The query with columns for parameters, and a way to look streams up that have them."""
        named = {column.name.lower(): f"`{PARAMETER}{column.name}`" for column in columns.columns}
        return read_template(sql).fill(named), with_parameters(self._streams.describe, columns)

    def find(self, handle_or_name: str, owner: str | None = None) -> Template:
        """The template of that handle or name."""
        with self._catalog.read() as tx:
            found = find_template(tx, check_text(handle_or_name, "a template's name"), owner)
            if found is None:
                mine = list_templates(tx, LOCAL if owner is None else owner)
                known = [one.name for one in mine if one.name is not None]
                raise UnknownQuery(f"there is no template '{handle_or_name}'", hint=nearest(handle_or_name, known))
        return found

    def numbers(self, handle: str, owner: str | None = None) -> Sequence[int]:
        """The numbers of a template's queries that stand."""
        template = self.find(handle, owner)
        with self._catalog.read() as tx:
            found: list[int] = standing_numbers(tx, template).tolist()
        return found

    def drop(self, handle: str, owner: str | None = None) -> None:
        """Let all queries of a template stand no longer."""
        with self._catalog.write() as tx:
            found = find_template(tx, handle, owner)
            if found is None or owner not in (None, found.owner):
                raise UnknownQuery(f"there is no template '{handle}'", hint="it was unregistered before")
            drop_template(tx, found.id)

    def describe(self, owner: str | None = None) -> list[tuple[Template, int]]:
        """All templates, or those an owner has or others share, with the number of their queries that stand."""
        with self._catalog.read() as tx:
            listed = list_templates(tx, owner, with_shared=True)
            return [(one, len(standing_numbers(tx, one))) for one in listed]

    def matches(self, handle: str, since: Position | None, owner: str | None = None) -> Matches:
        """The rows that joined the answers of its queries since a position."""
        template = self.find(handle, owner)
        with self._catalog.read() as tx:
            away = np.array(sorted(gone(tx, template.id)), np.int64)
        member = template.member(self._catalog.root, 0)
        return self._invoker.matches(member, self._pairing(template), away, since)

    def explain(self, handle: str, owner: str | None = None) -> dict[str, Any]:
        """How a template's queries are matched with new rows."""
        template = self.find(handle, owner)
        about = describe_template(template, len(self.numbers(handle, owner)))
        return {**about, "shape": template.shape, "matching": self._pairing(template).describe()}

    def _pairing(self, template: Template) -> Pairing:
        return self._pairings.get(template.id, lambda: self._make_pairing(template))

    def _make_pairing(self, template: Template) -> Pairing:
        columns, values = template.columns, template.values(self._catalog.root)
        named = [PARAMETER + name for name in columns.names]
        condition = self._condition(template.sql, columns)
        _, schema = self._streams.describe_id(template.stream_id)
        clause = bind_clause(*self._with_columns(template.sql, columns))
        numbers = np.arange(template.rows, dtype=np.int64)
        values = values.rename_columns(named)
        found = slots_of(clause, named)
        if found is not None and found[0] and can_compile(found[0], schema.stored, values):
            return Indexed(compile_table(found[0], schema.stored, values, numbers), found[1])
        asked = () if condition is None else condition.columns
        looked_at = [name for name in asked if schema.find(name) is not None]
        return Joined(condition, values.append_column(NUMBER, pa.array(numbers)), looked_at)


def _values(text: TemplateText, params: Any) -> tuple[Schema, pa.RecordBatch]:
    """The parameters as columns, in the template's own spelling."""
    if isinstance(params, list | tuple) and all(isinstance(one, Mapping) for one in params):
        try:
            params = pa.Table.from_pylist(list(params))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidRows("the parameters do not make a table", detail=str(error)) from None
    if hasattr(params, "__len__") and not len(params):
        raise InvalidRows("there is no row of parameters", hint="give one row for each query")
    schema, batch = content_of(None, params)
    given = {column.name.lower() for column in schema.columns}
    missing = [name for name in text.parameters if name not in given]
    extra = [name for name in given if name not in text.parameters]
    if missing or extra:
        what = f"no values for :{missing[0]}" if missing else f"the query has no parameter :{extra[0]}"
        raise TureenError(what, hint=f"the parameters of the query are :{', :'.join(text.parameters)}")
    return schema, batch
