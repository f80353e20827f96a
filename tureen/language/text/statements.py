"""The statements of the SQL interface, and their parser. Parsing looks nothing up.

A statement is a frozen dataclass. Statements that contain a query keep the query's text and location, so that errors
in it can be reported in lines and columns of the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from tureen.errors import InvalidSchema, Location, SqlError, TureenError
from tureen.language.moments import DAY_MICROS, read_date, read_timestamp
from tureen.language.text.declarations import (
    Options,
    read_columns,
    read_duration,
    read_names,
    read_options,
    read_retention,
)
from tureen.language.text.function_statement import CreateFunction, read_create_function
from tureen.language.text.peer_statements import CreatePeer, ShareStream, read_create_peer, read_share
from tureen.language.text.punctuate import read_punctuation
from tureen.language.text.statement_reader import StatementReader, did_you_mean, read_statement
from tureen.punctuation import Punctuation
from tureen.schema import Schema
from tureen.window import from_micros


@dataclass(frozen=True, slots=True)
class CreateStream:
    """`CREATE STREAM name (columns)` and the clauses TIME, RETAIN, CLOCK, UNIQUE, LATENESS, PUNCTUATE, ITEM, FROM."""

    name: str
    schema: Schema
    retain: str | None = None
    clock: str | None = None
    format: str | None = None
    options: Options = ()
    if_not_exists: bool = False
    location: Location = field(default=Location(1, 1), compare=False)
    unique: tuple[str, ...] | None = None
    lateness: str | None = None
    item: str | None = None
    punctuate: str | None = None
    key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeriveStream:
    """`CREATE STREAM name [TIME column] [RETAIN interval|NEEDED] [CLOCK clock] [ITEM 'path'] AS SELECT …`.

    Has the query's location too.
    """

    name: str
    sql: str
    time: str | None = None
    retain: str | None = None
    clock: str | None = None
    if_not_exists: bool = False
    location: Location = field(default=Location(1, 1), compare=False)
    query_location: Location = field(default=Location(1, 1), compare=False)
    item: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE TABLE name [(columns)] [FROM 'file']`."""

    name: str
    schema: Schema | None
    file: str | None = None
    if_not_exists: bool = False
    location: Location = field(default=Location(1, 1), compare=False)


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
# The first token of a query. Binding rejects all but SELECT, with a hint.
_SELECT = ("SELECT", "WITH", "(")


def parse_statement(text: str) -> Statement:
    """Parse a statement.

    >>> parse_statement("drop stream if exists trades;")
    Drop(kind='STREAM', name='trades', if_exists=True, location=Location(line=1, column=23))
    """
    reader = read_statement(text)
    if reader.peek() is None:
        raise SqlError("the text contains no statement", hint="such as SHOW STREAMS or SELECT … FROM a stream")
    if reader.word() in _SELECT:
        return Select(*reader.rest())
    read = _READ.get(reader.word())
    if read is None:
        raise _unknown(reader)
    reader.take()
    statement = read(reader)
    reader.end()
    return statement


def _create(reader: StatementReader) -> Statement:
    if reader.word() == "QUERY":
        raise reader.syntax_error("STREAM, TABLE, FUNCTION or PEER", "write REGISTER QUERY name AS SELECT …")
    replace = reader.accept("OR", "REPLACE")
    kinds = ("FUNCTION",) if replace else CREATED
    kind = reader.expect_any(kinds, "write CREATE STREAM, CREATE TABLE, CREATE FUNCTION or CREATE PEER")
    if kind == "PEER":
        return read_create_peer(reader)
    if kind == "FUNCTION":
        return read_create_function(reader, replace)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    location, name = reader.location(), reader.name(kind.lower())
    return (_create_stream if kind == "STREAM" else _create_table)(reader, name, if_not_exists, location)


_CLAUSES = ("TIME", "RETAIN", "CLOCK", "UNIQUE", "LATENESS", "PUNCTUATE", "ITEM", "FROM")
_RULES = ("UNIQUE", "LATENESS", "PUNCTUATE")
_DERIVED_CLAUSES = ("TIME", "RETAIN", "CLOCK", "ITEM")


def _create_stream(reader: StatementReader, name: str, if_not_exists: bool, location: Location) -> Statement:
    if reader.word() in (*_DERIVED_CLAUSES, *_RULES, "AS"):
        return _derive_stream(reader, name, if_not_exists, location)
    columns = read_columns(reader)
    time: str | None = None
    retain: str | None = None
    source: str | None = None
    options: Options = ()
    unique: tuple[str, ...] | None = None
    lateness: str | None = None
    clock: str | None = None
    item: str | None = None
    punctuate: str | None = None
    key: tuple[str, ...] | None = None
    time_location, seen = location, set[str]()
    while reader.peek() is not None:
        word = reader.word()
        if word == "AS":
            raise SqlError(
                "a stream with columns cannot be derived from a query",
                hint=f"a derived stream has the columns of its query: write CREATE STREAM {name} AS SELECT …",
                location=reader.location(),
            )
        if word in seen:
            raise SqlError(f"duplicate {word}", location=reader.location())
        reader.expect_any(
            _CLAUSES, "after the columns come TIME, RETAIN, CLOCK, UNIQUE, LATENESS, PUNCTUATE, ITEM and FROM"
        )
        seen.add(word)
        if word == "TIME":
            time_location, time = reader.location(), reader.name("time column")
        elif word == "RETAIN":
            retain = read_retention(reader, _CLAUSES)
        elif word == "CLOCK":
            clock = _read_clock(reader)
        elif word == "UNIQUE":
            unique = read_names(reader)
        elif word == "LATENESS":
            lateness = read_duration(reader, _CLAUSES, "such as LATENESS 10 SECONDS")
        elif word == "PUNCTUATE":
            reader.expect("BY", "write PUNCTUATE BY closed KEY (item)")
            punctuate = reader.name("column")
            key = read_names(reader) if reader.accept("KEY") else None
        elif word == "ITEM":
            item = _read_item(reader)
        else:
            source = reader.string("a format in quotes", "as in FROM 'rate' OPTIONS (rowsPerSecond '5')")
            options = read_options(reader) if reader.accept("OPTIONS") else ()
    schema = _checked(Schema(columns, time), time_location)
    return CreateStream(
        name, schema, retain, clock, source, options, if_not_exists, location, unique, lateness, item, punctuate, key
    )


def _derive_stream(reader: StatementReader, name: str, if_not_exists: bool, location: Location) -> Statement:
    values: dict[str, str] = {}
    hint = "before AS may come TIME, RETAIN, CLOCK and ITEM"
    while reader.word() not in _RULES and (word := reader.expect_any((*_DERIVED_CLAUSES, "AS"), hint)) != "AS":
        if word in values:
            raise SqlError(f"duplicate {word}", location=reader.location())
        if word == "TIME":
            values[word] = reader.name("time column")
        elif word == "RETAIN":
            values[word] = read_retention(reader, (*_CLAUSES, "AS"))
        elif word == "ITEM":
            values[word] = _read_item(reader)
        else:
            values[word] = _read_clock(reader)
    if reader.word() in _RULES:
        raise SqlError(
            f"{reader.word()} requires columns, and a derived stream has those of its query",
            hint=f"write {reader.word()} after the columns of a stream that the query reads",
            location=reader.location(),
        )
    if reader.word() not in _SELECT:
        raise reader.syntax_error("SELECT", f"write CREATE STREAM {name} AS SELECT …")
    sql, query_location = reader.rest()
    time, retain, clock, item = (values.get(word) for word in _DERIVED_CLAUSES)
    return DeriveStream(name, sql, time, retain, clock, if_not_exists, location, query_location, item)


def _read_item(reader: StatementReader) -> str:
    return reader.string("a path in quotes", "as in ITEM 'photons/photon'")


def _read_clock(reader: StatementReader) -> str:
    return reader.expect_any(("STREAM", "WALL"), "write CLOCK stream for replays, CLOCK wall otherwise").lower()


def _create_table(reader: StatementReader, name: str, if_not_exists: bool, location: Location) -> Statement:
    columns_location = reader.location()
    columns = read_columns(reader) if reader.word() != "FROM" else None
    schema = None if columns is None else _checked(Schema(columns), columns_location)
    file = None
    if reader.peek() is not None:
        if reader.word() in ("TIME", "RETAIN", "CLOCK"):
            raise SqlError(
                f"{reader.word()} is not allowed for a table", hint="use CREATE STREAM", location=reader.location()
            )
        reader.expect("FROM", "after the columns may come FROM 'file.csv'")
        file = reader.string("a file in quotes", "as in FROM 'companies.csv' or FROM 'companies.parquet'")
    return CreateTable(name, schema, file, if_not_exists, location)


def _checked(schema: Schema, location: Location) -> Schema:
    try:
        return schema.checked()
    except InvalidSchema as error:
        raise InvalidSchema(error.message, detail=error.detail, hint=error.hint, location=location) from None


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
    if reader.word() not in _SELECT:
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
    if reader.word() in _SELECT:
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
_INSTEAD = {
    "INSERT": "add rows with push(), or create the stream with a source",
    "DELETE": "RETAIN limits the rows of a stream; replace_table() changes a table",
    "UPDATE": "replace_table() changes a table",
    "ALTER": "drop it and create it again",
}


def _unknown(reader: StatementReader) -> SqlError:
    first, second = reader.word(), reader.word(1)
    hint = _INSTEAD.get(first)
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
