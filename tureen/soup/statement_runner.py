"""Runs statements: each becomes calls of an embedded pot or a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

from tureen.errors import (
    DuplicateName,
    InvalidRows,
    InvalidSchema,
    Location,
    TureenError,
    UnknownQuery,
    UnknownStream,
    UnknownTable,
    nearest,
)
from tureen.language.text.statements import (
    CreateStream,
    CreateTable,
    Describe,
    Drop,
    Explain,
    Invoke,
    Register,
    Select,
    Show,
    Statement,
    relocate,
)
from tureen.results.answer import Answer
from tureen.schema import Schema, name_key
from tureen.soup.standing import QueryTemplate, StandingQuery

Outcome = StandingQuery | Answer | list[dict[str, Any]] | dict[str, Any] | None
"""The result of a statement: REGISTER returns a handle, INVOKE and SELECT an answer, SHOW rows, EXPLAIN and DESCRIBE a
dict."""


class StatementBackend(Protocol):
    """The methods that statements call: of an embedded pot, or of a client."""

    def create_stream(
        self,
        name: str,
        schema: str | Schema,
        *,
        time: str | None = None,
        retain: str | None = None,
        clock: str = "wall",
        source: dict[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a stream."""

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a table."""

    def drop_stream(self, name: str) -> None:
        """Remove a stream."""

    def drop_table(self, name: str) -> None:
        """Remove a table."""

    def register(self, sql: str, *, name: str | None = None) -> StandingQuery:
        """Register a query."""

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """The answer of an unregistered query."""

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How an unregistered query would be answered."""

    def streams(self) -> list[dict[str, Any]]:
        """The streams."""

    def tables(self) -> list[dict[str, Any]]:
        """The tables."""

    def describe_queries(self) -> list[dict[str, Any]]:
        """The standing queries."""

    def templates(self) -> list[dict[str, Any]]:
        """The templates."""

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""


def run_statement(soup: StatementBackend, statement: Statement, *, files: bool = True) -> Outcome:
    """Run a statement; errors have their location in the text.

    `files=False` rejects `CREATE TABLE … FROM 'file'`, for callers on another machine.
    """
    match statement:
        case CreateStream():
            _create_stream(soup, statement)
        case CreateTable():
            _create_table(soup, statement, files)
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
        case Invoke(query, at, location):
            with _at(location):
                return soup.query(query).invoke(now=at)
        case Show(kinds):
            return _listing(soup, kinds)()
        case Describe():
            with _at(statement.location):
                return _describe(soup, statement)
    return None


def _create_stream(soup: StatementBackend, statement: CreateStream) -> None:
    source = None if statement.format is None else {"format": statement.format, "options": dict(statement.options)}
    with _at(statement.location):
        soup.create_stream(
            statement.name,
            statement.schema,
            retain=statement.retain,
            clock=statement.clock,
            source=source,
            if_not_exists=statement.if_not_exists,
        )


def _create_table(soup: StatementBackend, statement: CreateTable, files: bool) -> None:
    with _at(statement.location):
        if statement.file is not None and not files:
            raise InvalidRows("a server does not read files", hint="create the table, then send its rows")
        soup.create_table(statement.name, statement.schema, statement.file, if_not_exists=statement.if_not_exists)


def _drop(soup: StatementBackend, statement: Drop) -> None:
    with _at(statement.location):
        try:
            match statement.kind:
                case "STREAM":
                    soup.drop_stream(statement.name)
                case "TABLE":
                    soup.drop_table(statement.name)
                case _:
                    soup.query(statement.name).unregister()
        except (UnknownStream, UnknownTable, UnknownQuery):
            if not statement.if_exists:
                raise


def _listing(soup: StatementBackend, kinds: str) -> Callable[[], list[dict[str, Any]]]:
    listings = {
        "STREAMS": soup.streams,
        "TABLES": soup.tables,
        "QUERIES": soup.describe_queries,
        "TEMPLATES": soup.templates,
    }
    return listings[kinds]


_PLURAL = {"STREAM": "STREAMS", "TABLE": "TABLES", "QUERY": "QUERIES", "TEMPLATE": "TEMPLATES"}
_UNKNOWN: dict[str | None, type[TureenError]] = {
    "TABLE": UnknownTable,
    "QUERY": UnknownQuery,
    "TEMPLATE": UnknownQuery,
}


def _describe(soup: StatementBackend, statement: Describe) -> dict[str, Any]:
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


def _find(soup: StatementBackend, kind: str, name: str) -> dict[str, Any] | None:
    """The description of a name or a handle; names of queries and templates are those of the caller."""
    listed = _listing(soup, _PLURAL[kind])()
    if kind in ("STREAM", "TABLE"):
        return next((entry for entry in listed if name_key(entry["name"]) == name_key(name)), None)
    try:
        handle = soup.query(name).id if kind == "QUERY" else soup.template(name).id
    except UnknownQuery:
        return None
    return next((entry for entry in listed if entry.get("id") == handle), None)


_ABOUT_THE_TEXT = (DuplicateName, InvalidSchema, UnknownQuery, UnknownStream, UnknownTable)


@contextmanager
def _at(location: Location) -> Iterator[None]:
    """Give errors about a name or its object the location of the name."""
    try:
        yield
    except _ABOUT_THE_TEXT as error:
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
