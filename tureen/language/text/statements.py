"""The statements of the SQL interface, and their parser. Parsing looks nothing up.

A statement is a frozen dataclass. Statements that contain a query keep the query's text and location, so that errors
in it can be reported in lines and columns of the whole text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from tureen.errors import InvalidSchema, Location, SqlError, TureenError
from tureen.language.moments import DAY_MICROS, read_date, read_timestamp
from tureen.language.text.declarations import Options, read_columns, read_options, read_retention
from tureen.language.text.words import Words, did_you_mean, read_statement
from tureen.schema import Schema
from tureen.window import from_micros


@dataclass(frozen=True, slots=True)
class CreateStream:
    """`CREATE STREAM name (columns) [TIME column] [RETAIN interval] [CLOCK clock] [FROM 'format' [OPTIONS (…)]]`."""

    name: str
    schema: Schema
    retain: str | None = None
    clock: str = "wall"
    format: str | None = None
    options: Options = ()
    if_not_exists: bool = False
    location: Location = field(default=Location(1, 1), compare=False)


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
    """`DROP STREAM|TABLE|QUERY [IF EXISTS] name`."""

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
    """`SHOW STREAMS|TABLES|QUERIES|TEMPLATES`."""

    objects: str


@dataclass(frozen=True, slots=True)
class Explain:
    """`EXPLAIN query`, or `EXPLAIN SELECT …`; one of the two is None."""

    query: str | None
    sql: str | None
    location: Location = field(default=Location(1, 1), compare=False)


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


Statement = CreateStream | CreateTable | Drop | Register | Invoke | Show | Explain | Describe | Select

KINDS = ("STREAM", "TABLE", "QUERY")
DESCRIBED = (*KINDS, "TEMPLATE")
SHOWN = ("STREAMS", "TABLES", "QUERIES", "TEMPLATES")
# The first token of a query. Binding rejects all but SELECT, with a hint.
_SELECT = ("SELECT", "WITH", "(")


def parse_statement(text: str) -> Statement:
    """Parse a statement.

    >>> parse_statement("drop stream if exists trades;")
    Drop(kind='STREAM', name='trades', if_exists=True, location=Location(line=1, column=23))
    """
    words = read_statement(text)
    if words.peek() is None:
        raise SqlError("the text contains no statement", hint="such as SHOW STREAMS or SELECT … FROM a stream")
    if words.word() in _SELECT:
        return Select(*words.rest())
    read = _READ.get(words.word())
    if read is None:
        raise _unknown(words)
    words.take()
    statement = read(words)
    words.end()
    return statement


def _create(words: Words) -> Statement:
    if words.word() == "QUERY":
        raise words.syntax_error("STREAM or TABLE", "write REGISTER QUERY name AS SELECT …")
    kind = words.one_of(("STREAM", "TABLE"), "write CREATE STREAM or CREATE TABLE")
    if_not_exists = words.accept("IF", "NOT", "EXISTS")
    location, name = words.location(), words.name(kind.lower())
    return (_create_stream if kind == "STREAM" else _create_table)(words, name, if_not_exists, location)


_CLAUSES = ("TIME", "RETAIN", "CLOCK", "FROM")


def _create_stream(words: Words, name: str, if_not_exists: bool, location: Location) -> Statement:
    columns = read_columns(words)
    time: str | None = None
    retain: str | None = None
    source: str | None = None
    options: Options = ()
    time_location, clock, seen = location, "wall", set[str]()
    while words.peek() is not None:
        word = words.word()
        if word in seen:
            raise SqlError(f"duplicate {word}", location=words.location())
        words.one_of(_CLAUSES, "after the columns come TIME, RETAIN, CLOCK and FROM")
        seen.add(word)
        if word == "TIME":
            time_location, time = words.location(), words.name("time column")
        elif word == "RETAIN":
            retain = read_retention(words, _CLAUSES)
        elif word == "CLOCK":
            clock = words.one_of(("STREAM", "WALL"), "write CLOCK stream for replays, CLOCK wall otherwise").lower()
        else:
            source = words.string("a format in quotes", "as in FROM 'rate' OPTIONS (rowsPerSecond '5')")
            options = read_options(words) if words.accept("OPTIONS") else ()
    schema = _checked(Schema(columns, time), time_location)
    return CreateStream(name, schema, retain, clock, source, options, if_not_exists, location)


def _create_table(words: Words, name: str, if_not_exists: bool, location: Location) -> Statement:
    columns_location = words.location()
    columns = read_columns(words) if words.word() != "FROM" else None
    schema = None if columns is None else _checked(Schema(columns), columns_location)
    file = None
    if words.peek() is not None:
        if words.word() in ("TIME", "RETAIN", "CLOCK"):
            raise SqlError(
                f"{words.word()} is not allowed for a table", hint="use CREATE STREAM", location=words.location()
            )
        words.expect("FROM", "after the columns may come FROM 'file.csv'")
        file = words.string("a file in quotes", "as in FROM 'companies.csv' or FROM 'companies.parquet'")
    return CreateTable(name, schema, file, if_not_exists, location)


def _checked(schema: Schema, location: Location) -> Schema:
    try:
        return schema.checked()
    except InvalidSchema as error:
        raise InvalidSchema(error.message, detail=error.detail, hint=error.hint, location=location) from None


def _drop(words: Words) -> Statement:
    kind = words.one_of(KINDS, "write DROP STREAM, DROP TABLE or DROP QUERY")
    if_exists = words.accept("IF", "EXISTS")
    location = words.location()
    name = words.handle() if kind == "QUERY" else words.name(kind.lower())
    return Drop(kind, name, if_exists, location)


def _register(words: Words) -> Statement:
    name = None
    if words.accept("QUERY"):
        name = words.name("query")
        words.expect("AS", f"write REGISTER QUERY {name} AS SELECT …")
    if words.word() not in _SELECT:
        raise words.syntax_error("SELECT" if name else "QUERY or SELECT", "write REGISTER [QUERY name AS] SELECT …")
    sql, location = words.rest()
    return Register(sql, name, location)


def _invoke(words: Words) -> Statement:
    location = words.location()
    query = words.handle()
    return Invoke(query, _moment(words) if words.accept("AT") else None, location)


def _moment(words: Words) -> datetime:
    kind = words.one_of(("TIMESTAMP", "DATE")) if words.word() in ("TIMESTAMP", "DATE") else "TIMESTAMP"
    hint = "such as TIMESTAMP '2026-01-01 00:00:00', from year 1 to 9999"
    location = words.location()
    text = words.string("a time", hint)
    days = read_date(text) if kind == "DATE" else None
    micros = read_timestamp(text) if kind == "TIMESTAMP" else None if days is None else days * DAY_MICROS
    if micros is None:
        raise SqlError(f"'{text}' is not a {kind}", hint=hint, location=location)
    return from_micros(micros)


def _show(words: Words) -> Statement:
    return Show(words.one_of(SHOWN, "write SHOW STREAMS, SHOW TABLES, SHOW QUERIES or SHOW TEMPLATES"))


def _explain(words: Words) -> Statement:
    if words.word() in _SELECT:
        sql, location = words.rest()
        return Explain(None, sql, location)
    location = words.location()
    return Explain(words.handle(), None, location)


def _describe(words: Words) -> Statement:
    kind = words.take().text.upper() if words.word() in DESCRIBED and words.peek(1) is not None else None
    location = words.location()
    return Describe(words.handle(), kind, location)


_READ: dict[str, Callable[[Words], Statement]] = {
    "CREATE": _create,
    "DROP": _drop,
    "REGISTER": _register,
    "INVOKE": _invoke,
    "SHOW": _show,
    "EXPLAIN": _explain,
    "DESCRIBE": _describe,
    "DESC": _describe,
}
_OBJECTS = {"CREATE": ("STREAM", "TABLE"), "DROP": KINDS, "SHOW": SHOWN}
_INSTEAD = {
    "INSERT": "add rows with push(), or create the stream with a source",
    "DELETE": "RETAIN limits the rows of a stream; replace_table() changes a table",
    "UPDATE": "replace_table() changes a table",
    "ALTER": "drop it and create it again",
}


def _unknown(words: Words) -> SqlError:
    first, second = words.word(), words.word(1)
    hint = _INSTEAD.get(first)
    suggestion = did_you_mean(first, [*_READ, "SELECT"])
    if hint is None and suggestion is not None:
        verb = suggestion.removeprefix("did you mean ").removesuffix("?")
        objects = did_you_mean(second, _OBJECTS.get(verb, ()))
        hint = suggestion if objects is None else objects.replace("mean ", f"mean {verb} ")
    return SqlError(
        f"unknown statement {words.shown()}",
        hint=hint or f"statements begin with {', '.join([*_READ, 'SELECT'])}",
        location=words.location(),
    )


def relocate(error: TureenError, start: Location) -> None:
    """Move an error's location from a query to the surrounding text, in which the query starts at `start`."""
    if error.location is not None:
        line, column = error.location.line, error.location.column
        error.location = Location(line + start.line - 1, column + start.column - 1 if line == 1 else column)
