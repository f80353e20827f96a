"""Binds a query in WXQuery: text → the `Query` of the SQL that it means, with the template of its answers."""

from __future__ import annotations

from dataclasses import replace

from tureen.errors import TureenError
from tureen.functions.function_lookup import FunctionLookup, no_functions
from tureen.language.binding.passes import bind_query
from tureen.language.binding.scope import Lookup
from tureen.language.source import Source
from tureen.language.wxquery.parser import parse
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.translation import translate
from tureen.query import Query


def bind_wxquery(text: str, lookup: Lookup, functions: FunctionLookup = no_functions) -> Query:
    """The bound query of a text in WXQuery; errors have their location in that text."""
    scanner = Scanner(text)
    translation = translate(parse(text), scanner, lookup)
    sql = translation.sql
    try:
        query = bind_query(sql.text, lookup, functions=functions)
    except TureenError as error:
        if error.location is not None:
            origin = sql.origin(Source(sql.text).offset(error.location))
            error.location = None if origin is None else scanner.location(origin)
        raise
    return replace(query, sql=text, template=translation.template, translation=sql.text)
