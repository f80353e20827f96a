"""The parts of CREATE STREAM and CREATE TABLE: columns, retention, options of a source."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from tureen.errors import InvalidSchema, SqlError
from tureen.language.source import Source
from tureen.language.text.split import tokenize
from tureen.language.text.window_bounds import parse_duration
from tureen.language.text.words import Words
from tureen.schema import Column, Type

Options = tuple[tuple[str, str], ...]

_COLUMNS = "write the columns as in (sym STRING, price DOUBLE)"
_OPTIONS = "write options as in OPTIONS (rowsPerSecond '5')"


def read_columns(words: Words) -> tuple[Column, ...]:
    """Read the columns in parentheses."""
    if not words.accept("("):
        raise words.syntax_error("the columns in parentheses", _COLUMNS)
    columns: list[Column] = []
    while True:
        location, name = words.location(), words.name("column")
        if any(column.name.lower() == name.lower() for column in columns):
            raise InvalidSchema(f"duplicate column '{name}'", location=location)
        words.accept(":")
        columns.append(Column(name, _type(words, name)))
        if words.accept(")"):
            return tuple(columns)
        if not words.accept(","):
            raise words.syntax_error("a comma or a parenthesis", "a column is a name and a type")


def _type(words: Words, column: str) -> Type:
    location, token = words.location(), words.peek()
    if token is None or not token.text.isidentifier():
        raise words.syntax_error(f"the type of column '{column}'", "such as STRING, INT, DOUBLE or TIMESTAMP")
    text = words.take().text
    if words.accept("("):
        text += "("
        while not words.accept(")"):
            text += words.take().text
        text += ")"
    try:
        return Type.parse(text)
    except InvalidSchema as error:
        raise InvalidSchema(error.message, detail=error.detail, hint=error.hint, location=location) from None


def read_retention(words: Words, until: tuple[str, ...]) -> str:
    """Read the duration before the next clause: its text, or the value of a string literal."""
    location, tokens = words.location(), list[Token]()
    while words.peek() is not None and words.word() not in until:
        tokens.append(words.take())
    if not tokens:
        raise words.syntax_error("a duration", "such as RETAIN 1 DAY")
    is_string = len(tokens) == 1 and tokens[0].token_type is TokenType.STRING
    text = tokens[0].text if is_string else words.source.text[tokens[0].start : tokens[-1].end + 1]
    try:
        parse_duration(text)
    except SqlError as error:
        raise SqlError(error.message, detail=error.detail, hint=error.hint, location=location) from None
    return text


def read_options(words: Words) -> Options:
    """Read the options in parentheses: `key 'value'` or `key = 'value'`. Spark takes all values as strings."""
    if not words.accept("("):
        raise words.syntax_error("options in parentheses", _OPTIONS)
    options: dict[str, str] = {}
    while not (not options and words.accept(")")):
        location = words.location()
        key, value = _option(words)
        if key.lower() in (other.lower() for other in options):
            raise SqlError(f"duplicate option '{key}'", location=location)
        options[key] = value
        if words.accept(")"):
            break
        if not words.accept(","):
            raise words.syntax_error("a comma or a parenthesis", _OPTIONS)
    return tuple(options.items())


def _option(words: Words) -> tuple[str, str]:
    token = words.peek()
    if token is not None and token.token_type is TokenType.STRING:
        words.take()
        if words.word() in (",", ")"):
            return _pair(words, token)
        key = token.text
    else:
        key = words.part("option")
        while words.accept("."):
            key += "." + words.part("option")
    words.accept("=")
    return key, _value(words, key)


def _value(words: Words, key: str) -> str:
    sign = "-" if words.accept("-") else ""
    token = words.peek()
    if token is not None and not sign and token.token_type is TokenType.STRING:
        return words.take().text
    if token is not None and token.token_type is TokenType.NUMBER and (number := words.number()) is not None:
        return sign + number
    if not sign and words.word() in ("TRUE", "FALSE"):
        return words.take().text.lower()
    raise words.syntax_error(f"the value of option '{key}'", _OPTIONS)


def _pair(words: Words, token: Token) -> tuple[str, str]:
    """Split `'key' 'value'`, which the tokenizer reads as one string in two parts, into key and value."""
    raw = words.source.text[token.start : token.end + 1]
    pieces = Spark().tokenize(raw)
    gaps = [after.start for before, after in pairwise(pieces) if after.start > before.end + 1]
    if len(gaps) != 1:
        raise SqlError(f"option '{token.text}' has no value", hint=_OPTIONS, location=words.source.token(token))
    key, value = (tokenize(Source(piece))[0].text for piece in (raw[: gaps[0]], raw[gaps[0] :]))
    return key, value
