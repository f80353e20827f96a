"""The statements that create streams and tables: CREATE STREAM, with columns or AS a query, and CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.errors import InvalidSchema, Location, SqlError
from tureen.language.text.declarations import (
    Options,
    read_columns,
    read_duration,
    read_names,
    read_options,
    read_retention,
)
from tureen.language.text.statement_reader import StatementReader
from tureen.schema import Schema

QUERY_WORDS = ("SELECT", "WITH", "(")
"""The first token of a query. Binding rejects all but SELECT, with a hint."""


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


_CLAUSES = ("TIME", "RETAIN", "CLOCK", "UNIQUE", "LATENESS", "PUNCTUATE", "ITEM", "FROM")
_RULES = ("UNIQUE", "LATENESS", "PUNCTUATE")
_DERIVED_CLAUSES = ("TIME", "RETAIN", "CLOCK", "ITEM")


def read_create_stream(
    reader: StatementReader, name: str, if_not_exists: bool, location: Location
) -> CreateStream | DeriveStream:
    """Read what comes after CREATE STREAM and the name."""
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


def _derive_stream(reader: StatementReader, name: str, if_not_exists: bool, location: Location) -> DeriveStream:
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
    if reader.word() not in QUERY_WORDS:
        raise reader.syntax_error("SELECT", f"write CREATE STREAM {name} AS SELECT …")
    sql, query_location = reader.rest()
    time, retain, clock, item = (values.get(word) for word in _DERIVED_CLAUSES)
    return DeriveStream(name, sql, time, retain, clock, if_not_exists, location, query_location, item)


def _read_item(reader: StatementReader) -> str:
    return reader.string("a path in quotes", "as in ITEM 'photons/photon'")


def _read_clock(reader: StatementReader) -> str:
    return reader.expect_any(("STREAM", "WALL"), "write CLOCK stream for replays, CLOCK wall otherwise").lower()


def read_create_table(reader: StatementReader, name: str, if_not_exists: bool, location: Location) -> CreateTable:
    """Read what comes after CREATE TABLE and the name."""
    columns_location = reader.location()
    if reader.word() == "AS":
        raise reader.syntax_error("the columns in parentheses", f"write REGISTER QUERY {name} AS SELECT …")
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
