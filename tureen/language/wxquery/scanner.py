"""Reads the characters of a query in WXQuery: names, numbers, texts and symbols, without blanks and comments."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NoReturn

from tureen.errors import Location, SqlError
from tureen.language.source import Source

_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_STRING = re.compile(r'"((?:[^"]|"")*)"' + r"|'((?:[^']|'')*)'")
_SHOWN = re.compile(r"[\w$.\-]+|\S")


class Scanner:
    """A position in a text."""

    def __init__(self, text: str) -> None:
        """Start at the beginning."""
        self.text, self.at = text, 0
        self._source = Source(text)
        self.skip()

    def location(self, at: int) -> Location:
        """The line and column of an offset."""
        return self._source.location(at)

    def skip(self) -> None:
        """Skip blanks and comments, which are nested: `(: … :)`."""
        while True:
            match = _BLANKS.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if not self.text.startswith("(:", self.at):
                return
            self._skip_comment()

    def _skip_comment(self) -> None:
        start, depth = self.at, 0
        while self.at < len(self.text):
            pair = self.text[self.at : self.at + 2]
            if pair in ("(:", ":)"):
                depth += 1 if pair == "(:" else -1
                self.at += 2
                if not depth:
                    return
            else:
                self.at += 1
        raise SqlError("a comment is not closed", hint="close it with :)", location=self.location(start))

    def ended(self) -> bool:
        """Whether the text ends here."""
        return self.at >= len(self.text)

    def looks_at(self, symbol: str) -> bool:
        """Whether a symbol comes next."""
        return self.text.startswith(symbol, self.at)

    def accept(self, symbol: str) -> bool:
        """Take a symbol if it comes next."""
        if not self.looks_at(symbol):
            return False
        self.at += len(symbol)
        self.skip()
        return True

    def expect(self, symbol: str, hint: str | None = None) -> None:
        """Take a symbol; raises if something else comes next."""
        if not self.accept(symbol):
            self.fail(f"'{symbol}'", hint)

    def word(self) -> str:
        """The name that comes next, which is not taken; empty if there is none."""
        match = _NAME.match(self.text, self.at)
        return match.group() if match else ""

    def accept_word(self, word: str) -> bool:
        """Take a keyword if it comes next."""
        if self.word() != word:
            return False
        self.at += len(word)
        self.skip()
        return True

    def expect_word(self, word: str, hint: str | None = None) -> None:
        """Take a keyword; raises if something else comes next."""
        if not self.accept_word(word):
            self.fail(f"'{word}'", hint)

    def name(self, expected: str, hint: str | None = None, *, skip: bool = True) -> str:
        """Take a name."""
        name = self.word()
        if not name:
            self.fail(expected, hint)
        self.at += len(name)
        if skip:
            self.skip()
        return name

    def number(self) -> Decimal | float | None:
        """Take a number if one comes next: a decimal, or a double with an exponent."""
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        self.skip()
        return float(match.group()) if "e" in match.group().lower() else Decimal(match.group())

    def string(self) -> str | None:
        """Take a text in quotes if one comes next; a quote within it is written twice."""
        match = _STRING.match(self.text, self.at)
        if match is None:
            if self.looks_at('"') or self.looks_at("'"):
                raise SqlError("a text is not closed", location=self.location(self.at))
            return None
        self.at = match.end()
        self.skip()
        double, single = match.groups()
        return str(single).replace("''", "'") if double is None else str(double).replace('""', '"')

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Raise because something else was expected here."""
        match = _SHOWN.match(self.text, self.at)
        what = f"got '{match.group()[:40]}'" if match else "the text ends"
        raise SqlError(f"expected {expected}, {what}", hint=hint, location=self.location(self.at))
