"""The statements of the SQL interface, and their parser. Parsing looks nothing up.

A statement is a frozen dataclass. Statements that contain a query keep the query's text and location, so that errors
in it can be reported in lines and columns of the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from tureen.errors import Location, SqlError, TureenError
from tureen.language import other_engines
from tureen.language.moments import DAY_MICROS, read_date, read_timestamp
from tureen.language.text.function_statement import CreateFunction, read_create_function
from tureen.language.text.peer_statements import CreatePeer, ShareStream, read_create_peer, read_share
from tureen.language.text.punctuate import read_punctuation
from tureen.language.text.relation_statements import (
    QUERY_WORDS,
    CreateStream,
    CreateTable,
    DeriveStream,
    read_create_stream,
    read_create_table,
)
from tureen.language.text.statement_reader import StatementReader, did_you_mean, read_statement
from tureen.punctuation import Punctuation
from tureen.window import from_micros


@dataclass(frozen=True, slots=True)
class Drop:
    """`DROP STREAM|TABLE|QUERY|FUNCTION|PEER [IF EXISTS] name`."""

    kind: str
    name: str
    if_exists: bool = False
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Register:
    """`REGISTER [QUERY name AS] SELECT …`; the location is the SELECT's."""

    sql: str
    name: str | None = None
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Invoke:
    """`INVOKE query [AT TIMESTAMP '…']`."""

    query: str
    at: datetime | None = None
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW STREAMS|TABLES|QUERIES|TEMPLATES|FUNCTIONS|PEERS`."""

    objects: str


@dataclass(frozen=True, slots=True)
class Explain:
    """`EXPLAIN query`, or `EXPLAIN SELECT …`; one of the two is None."""

    query: str | None
    sql: str | None
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class ExplainRow:
    """`EXPLAIN ROW query [AT TIMESTAMP '…'] WHERE condition`; the second location is the condition's."""

    query: str
    condition: str
    at: datetime | None = None
    location: Location = field(default=Location(1, 1), compare=False)
    condition_location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Describe:
    """`DESCRIBE [STREAM|TABLE|QUERY|TEMPLATE] name`."""

    name: str
    kind: str | None = None
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """`SELECT …`, answered once."""

    sql: str
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class Punctuate:
    """`PUNCTUATE stream WHERE column = value [AND …]`; the second location is the condition's."""

    stream: str
    punctuation: Punctuation
    location: Location = field(default=Location(1, 1), compare=False)
    condition_location: Location = field(default=Location(1, 1), compare=False)


Creation = CreateStream | DeriveStream | CreateTable | CreateFunction | CreatePeer
Statement = (
    Creation | Drop | Register | Invoke | Show | Explain | ExplainRow | Describe | Select | Punctuate | ShareStream
)

KINDS = ("STREAM", "TABLE", "QUERY")
CREATED = ("STREAM", "TABLE", "FUNCTION", "PEER")
DROPPED = (*KINDS, "FUNCTION", "PEER")
DESCRIBED = (*KINDS, "TEMPLATE")
SHOWN = ("STREAMS", "TABLES", "QUERIES", "TEMPLATES", "FUNCTIONS", "PEERS")


def parse_statement(text: str) -> Statement:
    """Parse a statement.

    >>> parse_statement("drop stream if exists trades;")
    Drop(kind='STREAM', name='trades', if_exists=True, location=Location(line=1, column=23))
    """
    reader = read_statement(text)
    if reader.peek() is None:
        raise SqlError("the text contains no statement", hint="such as SHOW STREAMS or SELECT … FROM a stream")
    if reader.word() in QUERY_WORDS:
        return Select(*reader.rest())
    read = _READ.get(reader.word())
    if read is None:
        raise _unknown(reader)
    reader.take()
    statement = read(reader)
    reader.end()
    return statement


def _create(reader: StatementReader) -> Statement:
    if (hint := other_engines.CREATED.get(reader.word())) is not None:
        raise reader.syntax_error("STREAM, TABLE, FUNCTION or PEER", hint)
    replace = reader.accept("OR", "REPLACE")
    kinds = ("FUNCTION",) if replace else CREATED
    kind = reader.expect_any(kinds, "write CREATE STREAM, CREATE TABLE, CREATE FUNCTION or CREATE PEER")
    if kind == "PEER":
        return read_create_peer(reader)
    if kind == "FUNCTION":
        return read_create_function(reader, replace)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    location, name = reader.location(), reader.name(kind.lower())
    return (read_create_stream if kind == "STREAM" else read_create_table)(reader, name, if_not_exists, location)


def _drop(reader: StatementReader) -> Statement:
    kind = reader.expect_any(DROPPED, "write DROP STREAM, DROP TABLE, DROP QUERY or DROP FUNCTION")
    if_exists = reader.accept("IF", "EXISTS")
    location = reader.location()
    name = reader.handle() if kind == "QUERY" else reader.name(kind.lower())
    return Drop(kind, name, if_exists, location)


def _register(reader: StatementReader) -> Statement:
    name = None
    if reader.accept("QUERY"):
        name = reader.name("query")
        reader.expect("AS", f"write REGISTER QUERY {name} AS SELECT …")
    if reader.word() not in QUERY_WORDS:
        raise reader.syntax_error("SELECT" if name else "QUERY or SELECT", "write REGISTER [QUERY name AS] SELECT …")
    sql, location = reader.rest()
    return Register(sql, name, location)


def _invoke(reader: StatementReader) -> Statement:
    location = reader.location()
    query = reader.handle()
    return Invoke(query, _moment(reader) if reader.accept("AT") else None, location)


def _moment(reader: StatementReader) -> datetime:
    kind = reader.expect_any(("TIMESTAMP", "DATE")) if reader.word() in ("TIMESTAMP", "DATE") else "TIMESTAMP"
    hint = "such as TIMESTAMP '2026-01-01 00:00:00', from year 1 to 9999"
    location = reader.location()
    text = reader.string("a time", hint)
    days = read_date(text) if kind == "DATE" else None
    micros = read_timestamp(text) if kind == "TIMESTAMP" else None if days is None else days * DAY_MICROS
    if micros is None:
        raise SqlError(f"'{text}' is not a {kind}", hint=hint, location=location)
    return from_micros(micros)


def _show(reader: StatementReader) -> Statement:
    return Show(reader.expect_any(SHOWN, f"write SHOW and one of {', '.join(SHOWN)}"))


def _explain(reader: StatementReader) -> Statement:
    if reader.word() in QUERY_WORDS:
        sql, location = reader.rest()
        return Explain(None, sql, location)
    # A query may be named "row".
    if reader.word() == "ROW" and reader.peek(1) is not None:
        return _explain_row(reader)
    location = reader.location()
    return Explain(reader.handle(), None, location)


def _explain_row(reader: StatementReader) -> Statement:
    reader.take()
    location = reader.location()
    query = reader.handle()
    at = _moment(reader) if reader.accept("AT") else None
    reader.expect("WHERE", "write EXPLAIN ROW query WHERE condition")
    if reader.peek() is None:
        raise reader.syntax_error("a condition", "such as sym = 'IBM'")
    condition, condition_location = reader.rest()
    return ExplainRow(query, condition, at, location, condition_location)


def _punctuate(reader: StatementReader) -> Statement:
    location, stream = reader.location(), reader.name("stream")
    reader.expect("WHERE", f"write PUNCTUATE {stream} WHERE column = value")
    condition_location = reader.location()
    return Punctuate(stream, read_punctuation(reader), location, condition_location)


def _describe(reader: StatementReader) -> Statement:
    kind = reader.take().text.upper() if reader.word() in DESCRIBED and reader.peek(1) is not None else None
    location = reader.location()
    return Describe(reader.handle(), kind, location)


_READ: dict[str, Callable[[StatementReader], Statement]] = {
    "CREATE": _create,
    "DROP": _drop,
    "REGISTER": _register,
    "INVOKE": _invoke,
    "SHOW": _show,
    "EXPLAIN": _explain,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "PUNCTUATE": _punctuate,
    "SHARE": read_share,
    "UNSHARE": partial(read_share, shared=False),
}
_OBJECTS = {"CREATE": CREATED, "SHARE": ("STREAM",), "UNSHARE": ("STREAM",), "DROP": DROPPED, "SHOW": SHOWN}


def _unknown(reader: StatementReader) -> SqlError:
    first, second = reader.word(), reader.word(1)
    hint = other_engines.STATEMENTS.get(first)
    suggestion = did_you_mean(first, [*_READ, "SELECT"])
    if hint is None and suggestion is not None:
        verb = suggestion.removeprefix("did you mean ").removesuffix("?")
        objects = did_you_mean(second, _OBJECTS.get(verb, ()))
        hint = suggestion if objects is None else objects.replace("mean ", f"mean {verb} ")
    return SqlError(
        f"unknown statement {reader.shown()}",
        hint=hint or f"statements begin with {', '.join([*_READ, 'SELECT'])}",
        location=reader.location(),
    )


def relocate(error: TureenError, start: Location) -> None:
    """Move an error's location from a query to the surrounding text, in which the query starts at `start`."""
    if error.location is not None:
        line, column = error.location.line, error.location.column
        error.location = Location(line + start.line - 1, column + start.column - 1 if line == 1 else column)
