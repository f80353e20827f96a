"""Durations in a text: `10 MINUTES`, `INTERVAL '10' MINUTE`, `1 day 12 hours`, a bare number of seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, nearest
from tureen.language.source import Source

SECOND = 1_000_000
LONGEST = 1_000 * 366 * 86_400 * SECOND
"""No duration is longer than some thousand years, so that instants stay within what has a date."""

_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": SECOND,
    "MINUTE": 60 * SECOND,
    "HOUR": 3_600 * SECOND,
    "DAY": 86_400 * SECOND,
    "WEEK": 7 * 86_400 * SECOND,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SHORT = {"SEC": "SECOND", "MIN": "MINUTE", "MINS": "MINUTE", "SECS": "SECOND", "HR": "HOUR", "HRS": "HOUR"}
_SHORT |= {"S": "SECOND", "M": "MINUTE", "H": "HOUR", "D": "DAY", "MS": "MILLISECOND", "US": "MICROSECOND"}
_NUMBER = re.compile(r"\s*([+-]?\s*(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}))\s*", re.ASCII)
_PAIR = re.compile(r"\s*([+-]?\s*(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}))\s*([A-Za-z]+)\s*,?", re.ASCII)
_NO_UNITS = frozenset({"ROWS", "ROW", "TO", "NOW", "END", "BEGIN", "SLIDE", "START", "EMIT", "BY"})
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")


@dataclass(frozen=True, slots=True)
class Duration:
    """Calendar months and a fixed length."""

    micros: int = 0
    months: int = 0

    def __add__(self, other: Duration) -> Duration:
        """Both, one after the other."""
        return Duration(self.micros + other.micros, self.months + other.months)

    def __neg__(self) -> Duration:
        """The same, backwards."""
        return Duration(-self.micros, -self.months)


def unit_name(word: str) -> str | None:
    """The unit that a word means, in the singular, or None.

    >>> unit_name("minutes")
    'MINUTE'
    """
    word = word.upper()
    word = _SHORT.get(word, word)
    for one in (word, word.removesuffix("S")):
        if one in _MICROS or one in _MONTHS:
            return one
    return None


def duration_of(source: Source, number: str, word: str, at: int) -> Duration:
    """So many of a unit."""
    unit = unit_name(word)
    if unit is None:
        raise SqlError(
            f"'{word}' is not a unit of time",
            hint=nearest(word, [*_MICROS, *_MONTHS]) or "units are SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR …",
            place=source.place(at),
        )
    amount = Fraction(number.replace(" ", ""))
    if unit in _MONTHS:
        months = amount * _MONTHS[unit]
        if months.denominator != 1:
            raise SqlError("a part of a month has no fixed length", hint="write it in DAYS", place=source.place(at))
        return checked(source, Duration(months=int(months)), at)
    return checked(source, Duration(round(amount * _MICROS[unit])), at)


def checked(source: Source, duration: Duration, at: int) -> Duration:
    """The duration, if it is not beyond all dates."""
    if abs(duration.micros) > LONGEST or abs(duration.months) > 12_000:
        raise SqlError("the interval is too long", hint="at most 1000 years", place=source.place(at))
    return duration


def interval_text(source: Source, text: str, unit: str | None, to: str | None, at: int) -> Duration:
    """What `INTERVAL 'text' [unit [TO unit]]` means."""
    if to is not None and unit is not None:
        return _fields(source, text, unit, to, at)
    if unit is not None:
        found = _NUMBER.fullmatch(text)
        if not found:
            raise SqlError(f"'{text}' is not a number of {unit}", place=source.place(at))
        return duration_of(source, found.group(1), unit, at)
    total, end = Duration(), 0
    while found := _PAIR.match(text, end):
        total += duration_of(source, found.group(1), found.group(2), at)
        end = found.end()
    if not end or text[end:].strip():
        raise SqlError(f"'{text}' is not an interval", hint="such as INTERVAL '10' MINUTE", place=source.place(at))
    return checked(source, total, at)


def _fields(source: Source, text: str, unit: str, to: str, at: int) -> Duration:
    """`'1 02:03:04' DAY TO SECOND` and the like."""
    first, last = unit_name(unit), unit_name(to)
    text, sign = (text.strip()[1:], -1) if text.strip().startswith("-") else (text.strip(), 1)
    if (first, last) == ("YEAR", "MONTH"):
        found = re.fullmatch(r"(\d{1,6})-(\d{1,2})", text, re.ASCII)
        if found:
            months = sign * (int(found.group(1)) * 12 + int(found.group(2)))
            return checked(source, Duration(months=months), at)
    elif first in _FIELDS and last in _FIELDS and _FIELDS.index(first) < _FIELDS.index(last):
        names = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
        parts = re.split(r"[ :]", text)
        if len(parts) == len(names) and all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", one, re.ASCII) for one in parts):
            total = sum(Fraction(part) * _MICROS[name] for part, name in zip(parts, names, strict=True))
            return checked(source, Duration(sign * round(total)), at)
    raise SqlError(f"'{text}' is not an interval {unit} TO {to}".upper(), place=source.place(at))


class DurationReader:
    """Reads durations from tokens, one after another."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.next = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """The token to come, or None at the end."""
        i = self.next + ahead
        return self.tokens[i] if i < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The word to come in capitals; empty where what comes is no word."""
        token = self.peek(ahead)
        if token is None or token.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER):
            return ""
        return token.text.upper()

    def take(self) -> Token:
        """The token to come, which is then past."""
        token = self.peek()
        if token is None:
            last = self.tokens[-1].end + 1 if self.tokens else len(self.source.text)
            raise SqlError("the text ends too early", place=self.source.place(last))
        self.next += 1
        return token

    def unit(self) -> str | None:
        """The unit to come, if one does."""
        word = self.word()
        if word and word.isalpha() and word not in _NO_UNITS:
            self.take()
            return word
        return None

    def number(self) -> str | None:
        """The number to come, if one does; a suffix of Spark's numbers is read as a unit."""
        token = self.peek()
        if token is None or token.token_type is not TokenType.NUMBER:
            return None
        self.take()
        # `10D` and `5L` are split by the tokenizer into number, `::` and type.
        if (after := self.peek()) is not None and after.token_type is TokenType.DCOLON:
            raise SqlError("a number with a suffix is not taken here", place=self.source.token(token))
        if not _NUMBER.fullmatch(token.text):
            raise SqlError(f"'{token.text}' is not a plain number", place=self.source.token(token))
        return token.text

    def duration(self) -> Duration:
        """The duration to come: a number with or without a unit, or an INTERVAL."""
        token = self.peek()
        if self.word() == "INTERVAL":
            self.take()
            return self._interval()
        number = self.number()
        if number is None or token is None:
            raise SqlError(
                f"expected a length of time, not '{token.text}'" if token else "expected a length of time",
                hint="such as 10 MINUTES or INTERVAL '10' MINUTE",
                place=self.source.token(token) if token else self.source.place(len(self.source.text)),
            )
        unit = self.unit()
        return duration_of(self.source, number, unit or "SECOND", token.start)

    def _interval(self) -> Duration:
        total, first = Duration(), True
        while True:
            token = self.peek()
            at = token.start if token else len(self.source.text)
            if first and token is not None and token.token_type is TokenType.STRING:
                self.take()
                unit = self.unit()
                to = None
                if unit and self.word() == "TO":
                    self.take()
                    to = self.unit()
                return interval_text(self.source, token.text, unit, to, at)
            sign = ""
            if first and token is not None and token.token_type is TokenType.DASH:
                self.take()
                sign = "-"
            number = self.number()
            unit = self.unit() if number else None
            if number is None or unit is None:
                raise SqlError("expected INTERVAL '10' MINUTE or the like", place=self.source.place(at))
            total += duration_of(self.source, sign + number, unit, at)
            first = False
            after = self.peek()
            if after is None or after.token_type is not TokenType.NUMBER:
                return checked(self.source, total, at)
