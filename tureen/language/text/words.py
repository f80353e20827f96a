"""A statement's tokens, read one after another: words, names, handles, strings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from tureen.errors import Place, SqlError
from tureen.handle import PATTERN
from tureen.language.durations import DurationReader
from tureen.language.source import Source
from tureen.language.text.split import tokenize

_HANDLE = re.compile(rf"{PATTERN}(?!\w)", re.IGNORECASE)
_PLAIN = re.compile(r"(?=\w*[^\W\d])\w+")


def read_statement(text: str) -> Words:
    """The words of one statement, without its semicolon."""
    source = Source(text)
    tokens = _tokens(source)
    first = next((i for i, one in enumerate(tokens) if one.token_type is TokenType.SEMICOLON), len(tokens))
    for token in tokens[first:]:
        if token.token_type is not TokenType.SEMICOLON:
            raise SqlError("there is more than one statement", hint="run them one at a time", place=source.token(token))
    return Words(source, tokens[:first])


class Words(DurationReader):
    """Reads the parts of a statement, and says what was expected where they are not there."""

    def place(self) -> Place:
        """Where the token to come starts, or where the text ends."""
        token = self.peek()
        if token is not None:
            return self.source.token(token)
        return self.source.place(self.tokens[-1].end + 1 if self.tokens else len(self.source.text))

    def shown(self) -> str:
        """What comes, as an error shows it."""
        token = self.peek()
        return "the end of the text" if token is None else f"'{self.source.text[token.start : token.end + 1]}'"

    def refuse(self, expected: str, hint: str | None = None) -> SqlError:
        """The error that something else was expected here."""
        return SqlError(f"expected {expected}, not {self.shown()}", hint=hint, place=self.place())

    def accept(self, *words: str) -> bool:
        """Whether these words come; if so, they are past."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.next += len(words)
            return True
        return False

    def expect(self, word: str, hint: str | None = None) -> None:
        """Be past that word, or raise."""
        if not self.accept(word):
            raise self.refuse(word, hint)

    def one_of(self, words: Iterable[str], hint: str | None = None) -> str:
        """The word to come, which is one of these."""
        known = list(words)
        word = self.word()
        if word not in known:
            raise self.refuse(" or ".join(known), did_you_mean(word, known) or hint)
        self.take()
        return word

    def name(self, what: str) -> str:
        """The name to come, of one part."""
        found = self.part(what)
        if self.accept("."):
            raise SqlError(f"the name of a {what} has one part", hint="put it in backticks", place=self.place())
        return found

    def part(self, what: str) -> str:
        """The word to come, or anything in backticks."""
        token = self.peek()
        raw = "" if token is None else self.source.text[token.start : token.end + 1]
        if token is None or not (token.token_type is TokenType.IDENTIFIER or self._is_plain(token, raw)):
            quoted = token is not None and token.token_type is TokenType.STRING
            raise self.refuse(f"the name of a {what}", f"write `{token.text}`" if token and quoted else None)
        self.take()
        return token.text if token.token_type is TokenType.IDENTIFIER else raw

    def handle(self) -> str:
        """The handle or name of a query to come; a handle may look like a number to the tokenizer."""
        token = self.peek()
        found = None if token is None else _HANDLE.match(self.source.text, token.start)
        if found is None:
            return self.name("query")
        while (token := self.peek()) is not None and token.start < found.end():
            self.take()
        return found.group()

    def string(self, expected: str, hint: str) -> str:
        """The string to come."""
        token = self.peek()
        if token is None or token.token_type is not TokenType.STRING:
            raise self.refuse(expected, hint)
        return self.take().text

    def rest(self) -> tuple[str, Place]:
        """All that comes, as it was written, and where it begins."""
        place, first = self.place(), self.take()
        self.next = len(self.tokens)
        return self.source.text[first.start : self.tokens[-1].end + 1], place

    def end(self) -> None:
        """Raise if anything comes."""
        if self.peek() is not None:
            raise SqlError(
                f"{self.shown()} is not expected here", hint="the statement ends before it", place=self.place()
            )

    @staticmethod
    def _is_plain(token: Token, raw: str) -> bool:
        return token.token_type not in (TokenType.STRING, TokenType.NUMBER) and _PLAIN.fullmatch(raw) is not None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt keyword.

    >>> did_you_mean("STREEM", ["STREAM", "TABLE"])
    'did you mean STREAM?'
    """
    found = difflib.get_close_matches(word.upper(), list(known), n=1, cutoff=0.6)
    return f"did you mean {found[0]}?" if found else None


def _tokens(source: Source) -> list[Token]:
    """The tokens, also after words that sqlglot takes for commands and would read no further."""
    first: list[Token] = []
    with suppress(SqlglotError, UnicodeEncodeError):
        first = Spark().tokenize(source.text)[:1]
    if not first or first[0].token_type not in Spark.Tokenizer.COMMANDS:
        return tokenize(source)
    start, end = first[0].start, first[0].end + 1
    masked = source.text[:start] + "x" * (end - start) + source.text[end:]
    head, *others = tokenize(Source(masked))
    return [Token(TokenType.VAR, source.text[start:end], head.line, head.col, start, end - 1), *others]
