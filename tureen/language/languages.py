"""The languages of queries, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tureen.deferred_import import DeferredModule
from tureen.functions.function_lookup import FunctionLookup, no_functions
from tureen.language.binding.passes import bind_query
from tureen.language.binding.scope import Lookup
from tureen.query import Query

if TYPE_CHECKING:
    from tureen.language.wxquery import wxquery_binding
else:
    wxquery_binding = DeferredModule("tureen.language.wxquery.wxquery_binding")


def bind_text(text: str, language: str, lookup: Lookup, functions: FunctionLookup = no_functions) -> Query:
    """The bound query of a text in one of `tureen.arguments.LANGUAGES`."""
    if language == "wxquery":
        return wxquery_binding.bind_wxquery(text, lookup, functions)
    return bind_query(text, lookup, functions=functions)
