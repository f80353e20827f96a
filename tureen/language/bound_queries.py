"""Bound queries that are remembered by their texts: a query is bound when it is registered, and when it is invoked.

What a text means depends on the relations and user functions that it names. A query that names no user function is
bound again only if one of its relations is another. With quick binding off (`tureen/fast_paths.py`), every text is
bound each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tureen.bounded_cache import BoundedCache
from tureen.errors import TureenError
from tureen.fast_paths import FastPath, is_enabled
from tureen.functions.function_lookup import FunctionLookup
from tureen.functions.user_function import UserFunction
from tureen.language.binding.scope import Lookup
from tureen.query import NamedRelation, Query

_KEPT = 1 << 20
"""The size of all remembered texts together, in characters."""

_QUERY = 1 << 10
"""What a query counts beside its text."""

Bind = Callable[[str, Lookup, FunctionLookup], Query]
"""Binds a text in full."""


class _Bound(NamedTuple):
    """A bound query, and the relations that it was bound to, by the names that were looked up."""

    text: str
    relations: tuple[tuple[str, NamedRelation], ...]
    query: Query

    def is_current(self, lookup: Lookup) -> bool:
        """Whether all names still mean the same relations."""
        try:
            return all(lookup(name) == relation for name, relation in self.relations)
        except TureenError:
            # Binding in full says where in the text the unknown name is.
            return False


class _WatchedFunctions:
    """Looks up user functions, and remembers whether any was asked for."""

    def __init__(self, functions: FunctionLookup) -> None:
        """Look up functions with another look-up."""
        self._functions = functions
        self.were_used = False

    def __call__(self, name: str, /) -> UserFunction | None:
        """The function of a name; None if there is none."""
        self.were_used = True
        return self._functions(name)

    def names(self) -> Iterable[str]:
        """The names of all functions."""
        return self._functions.names()


_bound: BoundedCache[tuple[Bind, str], _Bound] = BoundedCache(_KEPT, lambda bound: _QUERY + len(bound.text))


def bind_once(bind: Bind, text: str, lookup: Lookup, functions: FunctionLookup) -> Query:
    """What `bind` returns, or what it returned for the same text over the same relations."""
    if not is_enabled(FastPath.QUICK_BINDING):
        return bind(text, lookup, functions)
    known = _bound.find((bind, text))
    if known is not None and known.is_current(lookup):
        return known.query
    relations: dict[str, NamedRelation | None] = {}

    def recording_lookup(name: str) -> NamedRelation:
        # It stays None if there is no such relation; what the name means may change then.
        relations[name] = None
        relation = relations[name] = lookup(name)
        return relation

    watched = _WatchedFunctions(functions)
    query = bind(text, recording_lookup, watched)
    if not watched.were_used and None not in relations.values():
        known_relations = tuple((name, relation) for name, relation in relations.items() if relation is not None)
        _bound.put((bind, text), _Bound(text, known_relations, query))
    return query
