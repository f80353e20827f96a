"""The methods of an embedded pot for templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tureen.arguments import check_text
from tureen.errors import Forbidden
from tureen.pot.members import Members
from tureen.pot.status import describe_template
from tureen.soup.open_pot import OpenPot
from tureen.soup.standing import QueryTemplate, StandingQuery, TemplateBackend

ALL_OWNERS = "*"
"""Selects the queries of all owners in lists."""


class TemplateCalls:
    """The templates of an open pot, as one owner sees them."""

    _pot: OpenPot
    _owner: str | None

    @property
    def _backend(self) -> TemplateBackend:
        """This object with the methods of its subclass `Soup`."""
        return cast(TemplateBackend, self)

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        """Register a query for each row of parameters, written `:name` in the select list, in WHERE or in HAVING.

        `params` is a list of dicts, an Arrow table, or a pandas or polars DataFrame. The queries are stored as values
        and evaluated when they are invoked, so that a million of them do not slow down arriving tuples. `label` is a
        column of `params` that is returned with each change, whether the SQL uses it or not.
        """
        handle = self._pot.writable().templates.register(sql, params, name, self._owner, label)
        return QueryTemplate(self._backend, handle, name, sql)

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""
        template = self._pot.components.templates.find(handle_or_name, self._owner)
        return QueryTemplate(self._backend, template.id, template.name, template.sql)

    def _listed_owner(self, owner: str | None) -> str | None:
        """The owner whose queries a list contains: by default this one; None for all owners."""
        if owner is None:
            return self._owner
        if self._owner not in (None, check_text(owner, "an owner")):
            raise Forbidden("listing queries of other owners needs an admin")
        return None if owner == ALL_OWNERS else owner

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        """The templates, in order of registration, with the number of their queries.

        `owner` selects the templates of a principal, or of all principals with "*".
        """
        listed_owner = self._listed_owner(owner)
        if not self._pot.exists():
            return []
        counted = self._pot.components.templates.describe(listed_owner, with_shared=owner is None)
        return [describe_template(template, queries) for template, queries in counted]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        """The description of one template."""
        templates = self._pot.components.templates
        template = templates.find(handle_or_name, self._owner)
        return describe_template(template, len(templates.members(template.id, self._owner)))

    def template_members(self, handle: str) -> Members:
        """The queries of a template."""
        return self._pot.components.templates.members(handle, self._owner)

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries."""
        return self.template_members(handle)

    def template_query(self, handle: str, index: int) -> StandingQuery:
        """A query of a template, by its index."""
        members = self.template_members(handle)
        query = members.find(members[index])
        assert query is not None
        return StandingQuery(self._backend, query.id, query.name, query.sql, label=query.label)

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Register a query for each row of parameters; see `QueryTemplate.add`."""
        return self._pot.writable().templates.add(check_text(handle, "a handle"), rows, self._owner)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Unregister queries of a template; see `QueryTemplate.remove`."""
        return self._pot.writable().templates.remove(check_text(handle, "a handle"), numbers, where, self._owner)

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched; see `QueryTemplate.explain`."""
        return self._pot.components.templates.explain(handle, self._owner)

    def unregister_template(self, handle: str) -> None:
        """Unregister a template and all its queries."""
        check_text(handle, "a handle")
        self._pot.writable().templates.drop(handle, self._owner)
