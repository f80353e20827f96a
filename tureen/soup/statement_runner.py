"""Statements carried out: each one becomes calls of a soup, embedded or elsewhere."""

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
"""What a statement gives: REGISTER a handle, INVOKE and SELECT an answer, SHOW rows, EXPLAIN and DESCRIBE one."""


class Speaks(Protocol):
    """What statements need of a soup."""

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
        """Make a stream."""

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Make a table."""

    def drop_stream(self, name: str) -> None:
        """Remove a stream."""

    def drop_table(self, name: str) -> None:
        """Remove a table."""

    def register(self, sql: str, *, name: str | None = None) -> StandingQuery:
        """Let a query stand."""

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""

    def answer_once(self, sql: str, *, now: datetime | None = None) -> Answer:
        """The answer of a query that does not stand."""

    def explain_once(self, sql: str) -> dict[str, Any]:
        """How a query that does not stand would be answered."""

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


def run_statement(soup: Speaks, statement: Statement, *, files: bool = True) -> Outcome:
    """Carry a statement out; an error has its location in the text.

    `files=False` refuses `CREATE TABLE … FROM 'file'`, for those whose files are not the soup's.
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
        case Show(what):
            return _listing(soup, what)()
        case Describe():
            with _at(statement.location):
                return _describe(soup, statement)
    return None


def _create_stream(soup: Speaks, wanted: CreateStream) -> None:
    source = None if wanted.format is None else {"format": wanted.format, "options": dict(wanted.options)}
    with _at(wanted.location):
        soup.create_stream(
            wanted.name,
            wanted.schema,
            retain=wanted.retain,
            clock=wanted.clock,
            source=source,
            if_not_exists=wanted.if_not_exists,
        )


def _create_table(soup: Speaks, wanted: CreateTable, files: bool) -> None:
    with _at(wanted.location):
        if wanted.file is not None and not files:
            raise InvalidRows("files are not read here", hint="create the table, then send its rows")
        soup.create_table(wanted.name, wanted.schema, wanted.file, if_not_exists=wanted.if_not_exists)


def _drop(soup: Speaks, wanted: Drop) -> None:
    with _at(wanted.location):
        try:
            match wanted.kind:
                case "STREAM":
                    soup.drop_stream(wanted.name)
                case "TABLE":
                    soup.drop_table(wanted.name)
                case _:
                    soup.query(wanted.name).unregister()
        except (UnknownStream, UnknownTable, UnknownQuery):
            if not wanted.if_exists:
                raise


def _listing(soup: Speaks, what: str) -> Callable[[], list[dict[str, Any]]]:
    listings = {
        "STREAMS": soup.streams,
        "TABLES": soup.tables,
        "QUERIES": soup.describe_queries,
        "TEMPLATES": soup.templates,
    }
    return listings[what]


_PLURAL = {"STREAM": "STREAMS", "TABLE": "TABLES", "QUERY": "QUERIES", "TEMPLATE": "TEMPLATES"}
_UNKNOWN: dict[str | None, type[TureenError]] = {
    "TABLE": UnknownTable,
    "QUERY": UnknownQuery,
    "TEMPLATE": UnknownQuery,
}


def _describe(soup: Speaks, wanted: Describe) -> dict[str, Any]:
    """The stream, table, query or template of that name; in this order, as a query may have a stream's name."""
    kinds = [wanted.kind] if wanted.kind else list(_PLURAL)
    for kind in kinds:
        found = _find(soup, kind, wanted.name)
        if found is not None:
            return {"kind": kind.lower(), **found}
    names = [one["name"] for kind in kinds for one in _listing(soup, _PLURAL[kind])() if one["name"] is not None]
    what = "stream, table, query or template" if wanted.kind is None else wanted.kind.lower()
    raise _UNKNOWN.get(wanted.kind, UnknownStream)(
        f"there is no {what} named '{wanted.name}'", hint=nearest(wanted.name, names)
    )


def _find(soup: Speaks, kind: str, name: str) -> dict[str, Any] | None:
    """What a listing says of a name or a handle; the names of queries and templates are the caller's own."""
    listed = _listing(soup, _PLURAL[kind])()
    if kind in ("STREAM", "TABLE"):
        return next((one for one in listed if name_key(one["name"]) == name_key(name)), None)
    try:
        handle = soup.query(name).id if kind == "QUERY" else soup.template(name).id
    except UnknownQuery:
        return None
    return next((one for one in listed if one.get("id") == handle), None)


_ABOUT_THE_TEXT = (DuplicateName, InvalidSchema, UnknownQuery, UnknownStream, UnknownTable)


@contextmanager
def _at(location: Location) -> Iterator[None]:
    """What is wrong with a name or what it stands for is shown where the name is."""
    try:
        yield
    except _ABOUT_THE_TEXT as error:
        error.location = error.location or location
        raise


@contextmanager
def _within(start: Location) -> Iterator[None]:
    """What is wrong within a query is shown where it is in the whole text."""
    try:
        yield
    except TureenError as error:
        relocate(error, start)
        raise
