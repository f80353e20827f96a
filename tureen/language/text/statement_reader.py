"""A reader of a statement's tokens: words, names, handles, strings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import Location, SqlError
from tureen.handle import PATTERN
from tureen.language.durations import DurationReader
from tureen.language.source import Source
from tureen.language.text.split import tokenize

_HANDLE = re.compile(rf"{PATTERN}(?!\w)", re.IGNORECASE)
_PLAIN = re.compile(r"(?=\w*[^\W\d])\w+")


def read_statement(text: str) -> StatementReader:
    """A reader of one statement, without its semicolon."""
    source = Source(text)
    tokens = _tokens(source)
    first = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON), len(tokens))
    for token in tokens[first:]:
        if token.token_type is not TokenType.SEMICOLON:
            raise SqlError("only one statement is allowed", hint="run them one at a time", location=source.token(token))
    return StatementReader(source, tokens[:first])


class StatementReader(DurationReader):
    """Reads the parts of a statement; raises errors that name what was expected."""

    def location(self) -> Location:
        """The location of the next token, or of the end of the text."""
        token = self.peek()
        if token is not None:
            return self.source.token(token)
        return self.source.location(self.tokens[-1].end + 1 if self.tokens else len(self.source.text))

    def shown(self) -> str:
        """The next token as error messages quote it."""
        token = self.peek()
        return "the end of the text" if token is None else f"'{self.source.text[token.start : token.end + 1]}'"

    def syntax_error(self, expected: str, hint: str | None = None) -> SqlError:
        """The error that something else was expected here."""
        return SqlError(f"expected {expected}, got {self.shown()}", hint=hint, location=self.location())

    def accept(self, *words: str) -> bool:
        """Consume these words if they come next; whether they did."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.next += len(words)
            return True
        return False

    def expect(self, word: str, hint: str | None = None) -> None:
        """Consume a word; raise if another comes next."""
        if not self.accept(word):
            raise self.syntax_error(word, hint)

    def expect_any(self, words: Iterable[str], hint: str | None = None) -> str:
        """Consume one of these words; raise if another comes next."""
        choices = list(words)
        word = self.word()
        if word not in choices:
            raise self.syntax_error(_alternatives(choices), did_you_mean(word, choices) or hint)
        self.take()
        return word

    def name(self, kind: str) -> str:
        """Read a name of one part."""
        name = self.part(kind)
        if self.accept("."):
            raise SqlError(
                f"the name of a {kind} must have one part", hint="quote it with backticks", location=self.location()
            )
        return name

    def part(self, kind: str) -> str:
        """Read a word, or anything in backticks."""
        token = self.peek()
        raw = "" if token is None else self.source.text[token.start : token.end + 1]
        if token is None or not (token.token_type is TokenType.IDENTIFIER or self._is_plain(token, raw)):
            is_string = token is not None and token.token_type is TokenType.STRING
            raise self.syntax_error(f"the name of a {kind}", f"write `{token.text}`" if token and is_string else None)
        self.take()
        return token.text if token.token_type is TokenType.IDENTIFIER else raw

    def handle(self) -> str:
        """Read the handle or name of a query. The tokenizer may split a handle, which can start like a number."""
        token = self.peek()
        handle = None if token is None else _HANDLE.match(self.source.text, token.start)
        if handle is None:
            return self.name("query")
        while (token := self.peek()) is not None and token.start < handle.end():
            self.take()
        return handle.group()

    def string(self, expected: str, hint: str) -> str:
        """Read a string."""
        token = self.peek()
        if token is None or token.token_type is not TokenType.STRING:
            raise self.syntax_error(expected, hint)
        return self.take().text

    def rest(self) -> tuple[str, Location]:
        """Read the rest of the text, and its location."""
        location, first = self.location(), self.take()
        self.next = len(self.tokens)
        return self.source.text[first.start : self.tokens[-1].end + 1], location

    def end(self) -> None:
        """Raise unless the statement ends here."""
        if self.peek() is not None:
            raise SqlError(
                f"{self.shown()} is not expected here", hint="the statement ends before it", location=self.location()
            )

    @staticmethod
    def _is_plain(token: Token, raw: str) -> bool:
        return token.token_type not in (TokenType.STRING, TokenType.NUMBER) and _PLAIN.fullmatch(raw) is not None


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    """The hint for a misspelt keyword.

    >>> did_you_mean("STREEM", ["STREAM", "TABLE"])
    'did you mean STREAM?'
    """
    matches = difflib.get_close_matches(word.upper(), list(choices), n=1, cutoff=0.6)
    return f"did you mean {matches[0]}?" if matches else None


def _tokens(source: Source) -> list[Token]:
    """The tokens of a text, also if its first word is a command to sqlglot, which would tokenize no further."""
    first: list[Token] = []
    with suppress(SqlglotError, UnicodeEncodeError):
        first = Spark().tokenize(source.text)[:1]
    if not first or first[0].token_type not in Spark.Tokenizer.COMMANDS:
        return tokenize(source)
    start, end = first[0].start, first[0].end + 1
    masked = source.text[:start] + "x" * (end - start) + source.text[end:]
    head, *others = tokenize(Source(masked))
    return [Token(TokenType.VAR, source.text[start:end], head.line, head.col, start, end - 1), *others]


def _alternatives(words: Sequence[str]) -> str:
    """Words as a list in English.

    >>> _alternatives(["STREAM", "TABLE", "QUERY"]), _alternatives(["A", "B"]), _alternatives(["A"])
    ('STREAM, TABLE or QUERY', 'A or B', 'A')
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
