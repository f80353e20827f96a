"""The languages of queries, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tureen.deferred_import import DeferredModule
from tureen.functions.function_lookup import FunctionLookup, no_functions
from tureen.language.binding.passes import bind_query
from tureen.language.binding.scope import Lookup
from tureen.language.bound_queries import bind_once
from tureen.query import Query

if TYPE_CHECKING:
    from tureen.language.wxquery import wxquery_binding
else:
    wxquery_binding = DeferredModule("tureen.language.wxquery.wxquery_binding")


def bind_text(text: str, language: str, lookup: Lookup, functions: FunctionLookup = no_functions) -> Query:
    """The bound query of a text in one of `tureen.arguments.LANGUAGES`."""
    return bind_once(_bind_wxquery if language == "wxquery" else _bind_sql, text, lookup, functions)


def _bind_wxquery(text: str, lookup: Lookup, functions: FunctionLookup) -> Query:
    return wxquery_binding.bind_wxquery(text, lookup, functions)


def _bind_sql(text: str, lookup: Lookup, functions: FunctionLookup) -> Query:
    return bind_query(text, lookup, functions=functions)
