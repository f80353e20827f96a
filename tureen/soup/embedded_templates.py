"""What a user calls of an embedded pot's templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tureen.arguments import check_text
from tureen.errors import Forbidden
from tureen.pot.members import Members
from tureen.pot.status import describe_template
from tureen.soup.open_pot import OpenPot
from tureen.soup.standing import Follows, QueryTemplate, StandingQuery

EVERYBODY = "*"
"""The owner of all queries, in lists."""


class TemplateCalls:
    """The templates of a pot in use, as its owner or somebody else sees them."""

    _pot: OpenPot
    _owner: str | None

    @property
    def _soup(self) -> Follows:
        """The whole of it, which has what a handle needs."""
        return cast(Follows, self)

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        """Let a query stand for each row of parameters, written `:name` in the select list, in WHERE or in HAVING.

        `params` is a list of dicts, an Arrow table, or a pandas or polars DataFrame. The queries are kept as values and
        evaluated when they are invoked, so that a million of them cost arriving tuples nothing. `label` names a column
        of `params` that comes with each change, whether the SQL uses it or not.
        """
        handle = self._pot.own().templates.register(sql, params, name, self._owner, label)
        return QueryTemplate(self._soup, handle, name, sql)

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""
        found = self._pot.parts.templates.find(handle_or_name, self._owner)
        return QueryTemplate(self._soup, found.id, found.name, found.sql)

    def _whose(self, owner: str | None) -> str | None:
        """Whose queries are meant: one's own, those of an owner, or everybody's."""
        if owner is None:
            return self._owner
        if self._owner not in (None, check_text(owner, "an owner")):
            raise Forbidden("others' queries are listed for an admin only")
        return None if owner == EVERYBODY else owner

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        """The templates, in order of registration, with the number of their queries that stand.

        With an `owner`, those of that principal; of all principals with "*".
        """
        whose = self._whose(owner)
        if not self._pot.is_there():
            return []
        found = self._pot.parts.templates.describe(whose, with_shared=owner is None)
        return [describe_template(one, standing) for one, standing in found]

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        """One template as it is now."""
        templates = self._pot.parts.templates
        found = templates.find(handle_or_name, self._owner)
        return describe_template(found, len(templates.members(found.id, self._owner)))

    def template_members(self, handle: str) -> Members:
        """The queries of a template that stand."""
        return self._pot.parts.templates.members(handle, self._owner)

    def template_numbers(self, handle: str) -> Sequence[int]:
        """The numbers of a template's queries that stand."""
        return self.template_members(handle)

    def template_query(self, handle: str, index: int) -> StandingQuery:
        """The template's registered query at an index."""
        members = self.template_members(handle)
        query = members.find(members[index])
        assert query is not None
        return StandingQuery(self._soup, query.id, query.name, query.sql, label=query.label)

    def add_to_template(self, handle: str, rows: Any) -> Sequence[int]:
        """Let a query stand for each of some more rows of parameters; see `QueryTemplate.add`."""
        return self._pot.own().templates.add(check_text(handle, "a handle"), rows, self._owner)

    def remove_from_template(
        self, handle: str, numbers: int | Iterable[int] | None, where: Mapping[str, Any] | None
    ) -> int:
        """Let some queries of a template stand no longer; see `QueryTemplate.remove`."""
        return self._pot.own().templates.remove(check_text(handle, "a handle"), numbers, where, self._owner)

    def explain_template(self, handle: str) -> dict[str, Any]:
        """How the queries of a template are matched; see `QueryTemplate.explain`."""
        return self._pot.parts.templates.explain(handle, self._owner)

    def unregister_template(self, handle: str) -> None:
        """Let all queries of a template stand no longer."""
        check_text(handle, "a handle")
        self._pot.own().templates.drop(handle, self._owner)
