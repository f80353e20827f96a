"""From text to a bound query, pass by pass."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, UnknownStream, Unsupported
from tureen.language.bind import bind_condition
from tureen.language.bounds import read_window
from tureen.language.factors import holds
from tureen.language.normal import clause_of
from tureen.language.scope import Scope
from tureen.language.select import check_select, read_outputs, stream_of
from tureen.language.source import Source
from tureen.language.split import split, tokenize
from tureen.predicate import Clause
from tureen.query import Query
from tureen.schema import Schema

Lookup = Callable[[str], tuple[str, Schema]]


def bind_query(text: str, lookup: Lookup) -> Query:
    """The standing query that a text means, over the stream that `lookup` finds.

    The passes: tokens, the window cut off, sqlglot's tree, names and types, predicates, normal form.
    """
    try:
        return _bind_query(text, lookup)
    except RecursionError:
        raise SqlError("the query is nested too deeply", hint="use IN for long lists, and fewer parentheses") from None


def _bind_query(text: str, lookup: Lookup) -> Query:
    source = Source(text)
    parts = split(source, tokenize(source))
    window = read_window(source, parts)
    select = _parse(source, parts.select)
    check_select(source, select, parts.select)
    table, names = stream_of(source, select)
    try:
        stream, schema = lookup(table.name)
    except UnknownStream as error:
        raise UnknownStream(
            error.message, detail=error.detail, hint=error.hint, place=error.place or source.node(table)
        ) from None
    scope = Scope(source, schema, (*names, stream) if len(names) == 1 and names[0] == table.name else names)
    outputs = read_outputs(scope, select)
    return Query(text, stream, _clause(scope, select), outputs, window)


def _clause(scope: Scope, select: exp.Select) -> Clause:
    where = select.args.get("where")
    if where is None:
        return ()
    return clause_of(scope.schema, holds(scope.schema, bind_condition(scope, where.this)))


def _parse(source: Source, tokens: list[Token]) -> exp.Select:
    for token in tokens:
        if token.text.upper() == "TRY_CAST" and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            raise Unsupported("TRY_CAST is not supported", hint="use CAST", place=source.token(token))
    try:
        found = Spark().parser().parse(tokens, source.text)
    except ParseError as error:
        raise _parse_error(source, tokens, error) from None
    except (SqlglotError, ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError):
        raise SqlError("the query cannot be understood", place=source.token(tokens[0])) from None
    tree = found[0] if len(found) == 1 else None
    if isinstance(tree, exp.SetOperation):
        raise Unsupported(
            f"{tree.key.upper()} is not supported yet",
            hint="register each SELECT by itself",
            place=source.token(tokens[0]),
        )
    if not isinstance(tree, exp.Select):
        raise SqlError("the text is not one SELECT", place=source.token(tokens[0]))
    return tree


def _parse_error(source: Source, tokens: list[Token], error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    line, col = first.get("line"), first.get("col")
    token = next((one for one in tokens if one.line == line and one.col == col), tokens[-1])
    said = str(first.get("description", ""))
    if said.startswith("Expecting "):
        message = f"expected {said.removeprefix('Expecting ').split()[0]} near '{token.text}'"
    elif said.startswith("Required keyword") or "Expected table name" in said:
        message = f"something is missing after '{token.text}'"
    else:
        message = f"'{token.text}' is not expected here"
    return SqlError(message, place=source.token(token))
