"""Runs statements: each becomes calls of an embedded pot or a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tureen.errors import (
    DuplicateName,
    FunctionInUse,
    InvalidFunction,
    InvalidPunctuation,
    InvalidRows,
    InvalidSchema,
    Location,
    TureenError,
    UnknownFunction,
    UnknownPeer,
    UnknownQuery,
    UnknownStream,
    UnknownTable,
    nearest,
)
from tureen.language.text.function_statement import CreateFunction
from tureen.language.text.peer_statements import CreatePeer, ShareStream
from tureen.language.text.relation_statements import CreateStream, CreateTable, DeriveStream
from tureen.language.text.statements import (
    Describe,
    Drop,
    Explain,
    ExplainRow,
    Invoke,
    Punctuate,
    Register,
    Select,
    Show,
    Statement,
    relocate,
)
from tureen.schema import name_key
from tureen.soup.interface import AnySoup, Outcome


def run_statement(soup: AnySoup, statement: Statement, *, files: bool = True) -> Outcome:
    """Run a statement; errors have their location in the text.

    `files=False` rejects `CREATE TABLE … FROM 'file'`, for callers on another machine.
    """
    match statement:
        case CreateStream():
            _create_stream(soup, statement)
        case DeriveStream():
            _derive_stream(soup, statement)
        case CreateTable():
            _create_table(soup, statement, files)
        case CreateFunction():
            with _at(statement.location):
                soup.create_function(
                    statement.name,
                    statement.path,
                    statement.returns,
                    arguments=statement.arguments,
                    vectorized=statement.vectorized,
                    replace=statement.replace,
                )
        case CreatePeer(name, url, token, ca):
            with _at(statement.location):
                soup.add_peer(name, url, token=token, ca=ca)
        case ShareStream(stream, peer, shared):
            with _at(statement.location):
                (soup.share_stream if shared else soup.unshare_stream)(peer, stream)
        case Drop():
            _drop(soup, statement)
        case Register(sql, name, location):
            with _within(location):
                return soup.register(sql, name=name)
        case Select(sql, location):
            with _within(location):
                return soup.answer_once(sql)
        case Explain(None, str(sql), location):
            with _within(location):
                return soup.explain_once(sql)
        case Explain(query, _, location):
            with _at(location):
                return soup.query(str(query)).explain()
        case ExplainRow(query, condition, at, location):
            with _at(location), _within(statement.condition_location):
                return soup.query(query).why(condition, now=at)
        case Invoke(query, at, location):
            with _at(location):
                return soup.query(query).invoke(now=at)
        case Show(kinds):
            return _listing(soup, kinds)()
        case Punctuate(stream, punctuation, location):
            with _at(location), _from(statement.condition_location):
                return {"position": str(soup.punctuate(stream, punctuation))}
        case Describe():
            with _at(statement.location):
                return _describe(soup, statement)
    return None


def _create_stream(soup: AnySoup, statement: CreateStream) -> None:
    source = None if statement.format is None else {"format": statement.format, "options": dict(statement.options)}
    with _at(statement.location):
        soup.create_stream(
            statement.name,
            statement.schema,
            retain=statement.retain,
            clock=statement.clock,
            source=source,
            unique=statement.unique,
            lateness=statement.lateness,
            punctuate=statement.punctuate,
            key=statement.key,
            item=statement.item,
            if_not_exists=statement.if_not_exists,
        )


def _derive_stream(soup: AnySoup, statement: DeriveStream) -> None:
    with _at(statement.location), _within(statement.query_location):
        soup.create_stream(
            statement.name,
            query=statement.sql,
            time=statement.time,
            retain=statement.retain,
            clock=statement.clock,
            item=statement.item,
            if_not_exists=statement.if_not_exists,
        )


def _create_table(soup: AnySoup, statement: CreateTable, files: bool) -> None:
    with _at(statement.location):
        if statement.file is not None and not files:
            raise InvalidRows("a server does not read files", hint="create the table, then send its rows")
        soup.create_table(statement.name, statement.schema, statement.file, if_not_exists=statement.if_not_exists)


def _drop(soup: AnySoup, statement: Drop) -> None:
    with _at(statement.location):
        try:
            match statement.kind:
                case "STREAM":
                    soup.drop_stream(statement.name)
                case "TABLE":
                    soup.drop_table(statement.name)
                case "FUNCTION":
                    soup.drop_function(statement.name)
                case "PEER":
                    soup.remove_peer(statement.name)
                case _:
                    soup.query(statement.name).unregister()
        except (UnknownStream, UnknownTable, UnknownQuery, UnknownFunction, UnknownPeer):
            if not statement.if_exists:
                raise


def _listing(soup: AnySoup, kinds: str) -> Callable[[], list[dict[str, Any]]]:
    listings = {
        "STREAMS": soup.streams,
        "TABLES": soup.tables,
        "QUERIES": soup.describe_queries,
        "TEMPLATES": soup.templates,
        "FUNCTIONS": soup.functions,
        "PEERS": soup.peers,
    }
    return listings[kinds]


_PLURAL = {"STREAM": "STREAMS", "TABLE": "TABLES", "QUERY": "QUERIES", "TEMPLATE": "TEMPLATES"}
_UNKNOWN: dict[str | None, type[TureenError]] = {
    "TABLE": UnknownTable,
    "QUERY": UnknownQuery,
    "TEMPLATE": UnknownQuery,
}


def _describe(soup: AnySoup, statement: Describe) -> dict[str, Any]:
    """The stream, table, query or template of that name, in this order: a query may have the name of a stream."""
    kinds = [statement.kind] if statement.kind else list(_PLURAL)
    for kind in kinds:
        description = _find(soup, kind, statement.name)
        if description is not None:
            return {"kind": kind.lower(), **description}
    listed = [description for kind in kinds for description in _listing(soup, _PLURAL[kind])()]
    names = [description["name"] for description in listed if description["name"] is not None]
    noun = "stream, table, query or template" if statement.kind is None else statement.kind.lower()
    raise _UNKNOWN.get(statement.kind, UnknownStream)(
        f"there is no {noun} named '{statement.name}'", hint=nearest(statement.name, names)
    )


def _find(soup: AnySoup, kind: str, name: str) -> dict[str, Any] | None:
    """The description of a name or a handle; names of queries and templates are those of the caller."""
    listed = _listing(soup, _PLURAL[kind])()
    if kind in ("STREAM", "TABLE"):
        return next((entry for entry in listed if name_key(entry["name"]) == name_key(name)), None)
    try:
        handle = soup.query(name).id if kind == "QUERY" else soup.template(name).id
    except UnknownQuery:
        return None
    return next((entry for entry in listed if entry.get("id") == handle), None)


_ABOUT_THE_TEXT = (
    DuplicateName,
    FunctionInUse,
    InvalidFunction,
    InvalidSchema,
    UnknownFunction,
    UnknownPeer,
    UnknownQuery,
    UnknownStream,
    UnknownTable,
)


@contextmanager
def _at(location: Location) -> Iterator[None]:
    """Give errors about a name or its object the location of the name."""
    try:
        yield
    except _ABOUT_THE_TEXT as error:
        error.location = error.location or location
        raise


@contextmanager
def _from(location: Location) -> Iterator[None]:
    """Give errors about a punctuation the location of its condition."""
    try:
        yield
    except InvalidPunctuation as error:
        error.location = error.location or location
        raise


@contextmanager
def _within(start: Location) -> Iterator[None]:
    """Convert the locations of errors in a query to locations in the whole text."""
    try:
        yield
    except TureenError as error:
        relocate(error, start)
        raise
