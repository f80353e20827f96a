"""The registry: standing queries are registered, found, shared, listed and let go of, each for its owner."""

from __future__ import annotations

from tureen.arguments import check_name, check_text
from tureen.errors import DuplicateName, StorageFailed, TureenError, UnknownQuery, UnknownStream
from tureen.language.fast.quick import QuickBinder
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.group_commit import GroupCommit
from tureen.pot.members import find_standing
from tureen.pot.queries import LOCAL, NewInput, Registered, Registration, Unregistration, list_queries, share
from tureen.pot.registering import change_together
from tureen.pot.stream_cache import StreamCache
from tureen.pot.streams import Stream
from tureen.pot.templates import find_template, share_template
from tureen.schema import Schema

MATERIALIZE = {True: True, False: False, "auto": None}
"""What may be said of a query's results, and how the catalog keeps it."""


class Registry:
    """The standing queries of one pot. An owner of None is whoever has the pot itself, and sees all of them."""

    def __init__(self, catalog: Catalog, streams: StreamCache) -> None:
        """Register in that catalog; those who come together are committed together."""
        self._catalog, self._streams = catalog, streams
        self._binder = QuickBinder()
        self._changes: GroupCommit[Registration | Unregistration, str] = GroupCommit(
            lambda changes: change_together(catalog, changes)
        )

    def register(self, sql: str, name: str | None, materialize: bool | str, owner: str | None) -> str:
        """Let a query stand and return its handle."""
        check_text(sql, "a query's SQL")
        if name is not None:
            name = check_name(name, "query")
        if not isinstance(materialize, bool | str) or materialize not in MATERIALIZE:
            raise TureenError(
                f"materialize is {ascii(materialize)[:40]}", hint="True, False, or 'auto' to leave it to the engine"
            )

        def attempt() -> str:
            streams: dict[str, Stream] = {}

            def describe(relation: str) -> tuple[str, Schema]:
                stream = self._streams.last_known(relation)
                if streams.setdefault(stream.name, stream).id != stream.id:
                    raise UnknownStream("the stream was recreated while the query was bound")
                return stream.name, stream.schema

            query, shape = self._binder.bind(sql, describe)
            inputs = tuple(NewInput(streams[entry.relation].id, entry.clause) for entry in query.inputs)
            new = Registration(sql, shape, inputs, MATERIALIZE[materialize], name, LOCAL if owner is None else owner)
            return self._changes.submit(new)

        try:
            return attempt()
        except (DuplicateName, StorageFailed):
            raise
        except TureenError:
            # The stream may have been recreated. A dropped one is refused in the commit, by the id of the very stream
            # that the query was bound to, so stale knowledge can make a registration fail and do nothing worse.
            self._streams.forget()
            return attempt()

    def unregister(self, handle: str, owner: str | None) -> None:
        """Let a query stand no longer."""
        # Before it is among others, whom it must not stop.
        self._changes.submit(Unregistration(check_text(handle, "a handle"), owner))

    def find(self, handle_or_name: str, owner: str | None) -> Registered:
        """The query of a handle or name, as the catalog has it now."""
        check_text(handle_or_name, "a query's name")
        with self._catalog.read() as tx:
            return find_standing(tx, self._catalog.root, handle_or_name, owner)

    def page(
        self, owner: str | None, after: str | None, limit: int | None, *, with_shared: bool = True
    ) -> list[Registered]:
        """Queries in order of registration, from a `place` on: an owner's, perhaps with what others share."""
        if limit is not None and (type(limit) is not int or not 1 <= limit < 1 << 62):
            raise TureenError(f"a limit of {ascii(limit)[:40]}", hint="give a number from 1 on")
        after = None if after is None else check_text(after, "a place in a list")
        with self._catalog.read() as tx:
            return list_queries(tx, owner, after, limit, with_shared=with_shared)

    def share(self, handle: str, shared: bool, owner: str | None) -> None:
        """Let everybody see a query or a template, by its handle, or no longer."""
        if not isinstance(shared, bool):
            raise TureenError(f"shared is {ascii(shared)[:40]}", hint="True or False")
        with self._catalog.write() as tx:
            template = find_template(tx, check_text(handle, "a handle"), owner)
            take_seq(tx)
            if template is None:
                share(tx, handle, shared, owner)
            elif owner in (None, template.owner):
                share_template(tx, template.id, shared)
            else:
                raise UnknownQuery(f"there is no query '{handle}'")
