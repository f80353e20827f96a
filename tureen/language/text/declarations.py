"""The parts of CREATE STREAM and CREATE TABLE: columns, retention, options of a source."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from tureen.errors import InvalidSchema, SqlError
from tureen.language.other_engines import CONSTRAINTS
from tureen.language.source import Source
from tureen.language.text.split import tokenize
from tureen.language.text.statement_reader import StatementReader
from tureen.language.text.window_bounds import parse_duration
from tureen.retention import NEEDED
from tureen.schema import Column, Type

Options = tuple[tuple[str, str], ...]

_COLUMNS = "write the columns as in (sym STRING, price DOUBLE)"
_OPTIONS = "write options as in OPTIONS (rowsPerSecond '5')"


def read_columns(reader: StatementReader) -> tuple[Column, ...]:
    """Read the columns in parentheses."""
    if not reader.accept("("):
        raise reader.syntax_error("the columns in parentheses", _COLUMNS)
    columns: list[Column] = []
    while True:
        location, name = reader.location(), reader.name("column")
        if any(column.name.lower() == name.lower() for column in columns):
            raise InvalidSchema(f"duplicate column '{name}'", location=location)
        reader.accept(":")
        columns.append(Column(name, read_type(reader, f"column '{name}'")))
        if reader.accept(")"):
            return tuple(columns)
        if not reader.accept(","):
            hint = CONSTRAINTS.get(reader.word(), "a column is a name and a type")
            raise reader.syntax_error("a comma or a parenthesis", hint)


def read_type(reader: StatementReader, owner: str) -> Type:
    """Read the type of a column, an argument or a result."""
    location, token = reader.location(), reader.peek()
    if token is None or not token.text.isidentifier():
        raise reader.syntax_error(f"the type of {owner}", "such as STRING, INT, DOUBLE or TIMESTAMP")
    text = reader.take().text
    if reader.accept("("):
        text += "("
        while not reader.accept(")"):
            text += reader.take().text
        text += ")"
    try:
        return Type.parse(text)
    except InvalidSchema as error:
        raise InvalidSchema(error.message, detail=error.detail, hint=error.hint, location=location) from None


def read_names(reader: StatementReader) -> tuple[str, ...]:
    """Read the names of columns in parentheses."""
    if not reader.accept("("):
        raise reader.syntax_error("columns in parentheses", "such as UNIQUE (item)")
    names = [reader.name("column")]
    while reader.accept(","):
        names.append(reader.name("column"))
    if not reader.accept(")"):
        raise reader.syntax_error("a comma or a parenthesis", "such as UNIQUE (item)")
    return tuple(names)


def read_retention(reader: StatementReader, until: tuple[str, ...]) -> str:
    """Read NEEDED, or a duration."""
    if reader.word() == NEEDED.upper():
        reader.take()
        return NEEDED
    return read_duration(reader, until, "such as RETAIN 1 DAY, or RETAIN NEEDED")


def read_duration(reader: StatementReader, until: tuple[str, ...], hint: str) -> str:
    """Read the duration before the next clause: its text, or the value of a string literal."""
    location, tokens = reader.location(), list[Token]()
    while reader.peek() is not None and reader.word() not in until:
        tokens.append(reader.take())
    if not tokens:
        raise reader.syntax_error("a duration", hint)
    is_string = len(tokens) == 1 and tokens[0].token_type is TokenType.STRING
    text = tokens[0].text if is_string else reader.source.text[tokens[0].start : tokens[-1].end + 1]
    try:
        parse_duration(text)
    except SqlError as error:
        raise SqlError(error.message, detail=error.detail, hint=error.hint, location=location) from None
    return text


def read_options(reader: StatementReader) -> Options:
    """Read the options in parentheses: `key 'value'` or `key = 'value'`. Spark takes all values as strings."""
    if not reader.accept("("):
        raise reader.syntax_error("options in parentheses", _OPTIONS)
    options: dict[str, str] = {}
    while not (not options and reader.accept(")")):
        location = reader.location()
        key, value = _option(reader)
        if key.lower() in (other.lower() for other in options):
            raise SqlError(f"duplicate option '{key}'", location=location)
        options[key] = value
        if reader.accept(")"):
            break
        if not reader.accept(","):
            raise reader.syntax_error("a comma or a parenthesis", _OPTIONS)
    return tuple(options.items())


def _option(reader: StatementReader) -> tuple[str, str]:
    token = reader.peek()
    if token is not None and token.token_type is TokenType.STRING:
        reader.take()
        if reader.word() in (",", ")"):
            return _pair(reader, token)
        key = token.text
    else:
        key = reader.part("option")
        while reader.accept("."):
            key += "." + reader.part("option")
    reader.accept("=")
    return key, _value(reader, key)


def _value(reader: StatementReader, key: str) -> str:
    sign = "-" if reader.accept("-") else ""
    token = reader.peek()
    if token is not None and not sign and token.token_type is TokenType.STRING:
        return reader.take().text
    if token is not None and token.token_type is TokenType.NUMBER and (number := reader.number()) is not None:
        return sign + number
    if not sign and reader.word() in ("TRUE", "FALSE"):
        return reader.take().text.lower()
    raise reader.syntax_error(f"the value of option '{key}'", _OPTIONS)


def _pair(reader: StatementReader, token: Token) -> tuple[str, str]:
    """Split `'key' 'value'`, which the tokenizer reads as one string in two parts, into key and value."""
    raw = reader.source.text[token.start : token.end + 1]
    pieces = Spark().tokenize(raw)
    gaps = [after.start for before, after in pairwise(pieces) if after.start > before.end + 1]
    if len(gaps) != 1:
        raise SqlError(f"option '{token.text}' has no value", hint=_OPTIONS, location=reader.source.token(token))
    key, value = (tokenize(Source(piece))[0].text for piece in (raw[: gaps[0]], raw[gaps[0] :]))
    return key, value
