"""The registry: register, find, share, list and unregister standing queries, per owner."""

from __future__ import annotations

from tureen.arguments import check_name, check_positive, check_text
from tureen.errors import DuplicateName, StorageFailed, TureenError, UnknownQuery, shown
from tureen.language.fast.quick import QuickBinder
from tureen.language.templates.member import member_text
from tureen.plan_hint import NO_HINT, check_plan_hint
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.functions import StoredFunctions
from tureen.pot.group_commit import GroupCommit
from tureen.pot.kept_joins import new_join
from tureen.pot.members import find_standing
from tureen.pot.queries import list_queries, share
from tureen.pot.registered import LOCAL, Registered, Registration, Unregistration
from tureen.pot.registering import change_together
from tureen.pot.relations import Relations
from tureen.pot.stream_cache import StreamCache
from tureen.pot.templates import find_template, share_template
from tureen.soup.remote_inputs import RemoteStreams, claimed_inputs, finding_remote

MATERIALIZE = {True: True, False: False, "auto": None}
"""The values of `materialize`, and their representation in the catalog."""


class Registry:
    """The standing queries of one pot. An owner of None is the user of the pot's directory, and sees all queries."""

    def __init__(self, catalog: Catalog, streams: StreamCache) -> None:
        """Register in that catalog; concurrent changes share a commit."""
        self._catalog, self._streams = catalog, streams
        self._binder = QuickBinder()
        self.remote: RemoteStreams | None = None
        """What receives streams of other servers, in a server."""
        self._changes: GroupCommit[Registration | Unregistration, str] = GroupCommit(
            lambda changes: change_together(catalog, changes)
        )

    def register(
        self,
        sql: str,
        name: str | None,
        materialize: bool | str,
        owner: str | None,
        plan: str | None = None,
        jit: bool | None = None,
        language: str = "sql",
    ) -> str:
        """Register a query and return its handle."""
        check_text(sql, "a query's SQL")
        if name is not None:
            name = check_name(name, "query")
        if not isinstance(materialize, bool | str) or materialize not in MATERIALIZE:
            raise TureenError(f"materialize must be True, False or 'auto', got {shown(materialize)}")
        hint = check_plan_hint(plan, jit)

        def attempt() -> str:
            find = finding_remote(self._streams.last_known, self.remote)
            relations = Relations(find, StoredFunctions(self._catalog.read))
            query, shape = self._binder.bind(sql, relations.describe, relations.function, language)
            if hint != NO_HINT and not query.joins:
                raise TureenError(
                    "plan and jit are for joins, and the query has one input", hint="leave out plan and jit"
                )
            with claimed_inputs(relations, query, self.remote, aggregates=True) as inputs:
                new = Registration(
                    sql,
                    shape,
                    inputs,
                    MATERIALIZE[materialize],
                    name,
                    LOCAL if owner is None else owner,
                    language=language,
                    join=new_join(query, [entry.stream_id for entry in inputs]),
                    functions=tuple(relations.called.values()),
                    plan_hint=hint,
                )
                return self._changes.submit(new)

        try:
            return attempt()
        except (DuplicateName, StorageFailed):
            raise
        except TureenError:
            # The stream may have been recreated. The commit checks the id of the stream that the query was bound to, so
            # outdated entries can only make a registration fail.
            self._streams.forget()
            return attempt()

    def unregister(self, handle: str, owner: str | None) -> None:
        """Unregister a query."""
        # Checked here, because in a shared commit an error would affect other registrations.
        self._changes.submit(Unregistration(check_text(handle, "a handle"), owner))

    def find(self, handle_or_name: str, owner: str | None) -> Registered:
        """The catalog entry of a query, by its handle or name."""
        check_text(handle_or_name, "a query's name")
        with self._catalog.read() as tx:
            return find_standing(tx, self._catalog.root, handle_or_name, member_text, owner)

    def page(
        self,
        owner: str | None,
        after: str | None,
        limit: int | None,
        *,
        with_shared: bool = True,
        search: str | None = None,
        failed: bool = False,
    ) -> list[Registered]:
        """Queries of an owner in order of registration, after a cursor; see `tureen.pot.queries.list_queries`."""
        if limit is not None:
            check_positive(limit, "limit")
        after = None if after is None else check_text(after, "a cursor")
        with self._catalog.read() as tx:
            return list_queries(tx, owner, after, limit, with_shared=with_shared, search=search, failed=failed)

    def share(self, handle: str, shared: bool, owner: str | None) -> None:
        """Share a query or a template with all principals, or stop sharing it."""
        if not isinstance(shared, bool):
            raise TureenError(f"shared must be True or False, got {shown(shared)}")
        with self._catalog.write() as tx:
            template = find_template(tx, check_text(handle, "a handle"), owner)
            take_seq(tx)
            if template is None:
                share(tx, handle, shared, owner)
            elif owner in (None, template.owner):
                share_template(tx, template.id, shared)
            else:
                raise UnknownQuery(f"there is no query '{handle}'")
