"""Durations in SQL: `10 MINUTES`, `INTERVAL '10' MINUTE`, `1 day 12 hours`, a bare number of seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlglot.tokens import Token, TokenType

from tureen.errors import SqlError, nearest
from tureen.language.source import Source

SECOND = 1_000_000
LONGEST = 1_000 * 366 * 86_400 * SECOND
"""The longest duration, about 1000 years: instants must stay within the range of dates."""

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
    """Calendar months plus a fixed number of microseconds."""

    micros: int = 0
    months: int = 0

    def __add__(self, other: Duration) -> Duration:
        """The sum of two durations."""
        return Duration(self.micros + other.micros, self.months + other.months)

    def __neg__(self) -> Duration:
        """The negated duration."""
        return Duration(-self.micros, -self.months)


def unit_name(word: str) -> str | None:
    """The unit that a word names, in the singular, or None.

    >>> unit_name("minutes")
    'MINUTE'
    """
    word = word.upper()
    word = _SHORT.get(word, word)
    for unit in (word, word.removesuffix("S")):
        if unit in _MICROS or unit in _MONTHS:
            return unit
    return None


def duration_of(source: Source, number: str, word: str, at: int) -> Duration:
    """The duration of a number of units."""
    unit = unit_name(word)
    if unit is None:
        raise SqlError(
            f"'{word}' is not a unit of time",
            hint=nearest(word, [*_MICROS, *_MONTHS]) or "units are SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, YEAR …",
            location=source.location(at),
        )
    amount = Fraction(number.replace(" ", ""))
    if unit in _MONTHS:
        months = amount * _MONTHS[unit]
        if months.denominator != 1:
            raise SqlError(
                "a fraction of a month has no fixed length", hint="write it in DAYS", location=source.location(at)
            )
        return checked(source, Duration(months=int(months)), at)
    return checked(source, Duration(round(amount * _MICROS[unit])), at)


def checked(source: Source, duration: Duration, at: int) -> Duration:
    """The duration, unless it is too long."""
    if abs(duration.micros) > LONGEST or abs(duration.months) > 12_000:
        raise SqlError("the interval is too long", hint="at most 1000 years", location=source.location(at))
    return duration


def interval_text(source: Source, text: str, unit: str | None, to: str | None, at: int) -> Duration:
    """The duration of `INTERVAL 'text' [unit [TO unit]]`."""
    if to is not None and unit is not None:
        return _fields(source, text, unit, to, at)
    if unit is not None:
        match = _NUMBER.fullmatch(text)
        if not match:
            raise SqlError(f"'{text}' is not a number of {unit}", location=source.location(at))
        return duration_of(source, match.group(1), unit, at)
    total, end = Duration(), 0
    while match := _PAIR.match(text, end):
        total += duration_of(source, match.group(1), match.group(2), at)
        end = match.end()
    if not end or text[end:].strip():
        raise SqlError(
            f"'{text}' is not an interval", hint="such as INTERVAL '10' MINUTE", location=source.location(at)
        )
    return checked(source, total, at)


def _fields(source: Source, text: str, unit: str, to: str, at: int) -> Duration:
    """`'1 02:03:04' DAY TO SECOND` and the like."""
    first, last = unit_name(unit), unit_name(to)
    text, sign = (text.strip()[1:], -1) if text.strip().startswith("-") else (text.strip(), 1)
    if (first, last) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"(\d{1,6})-(\d{1,2})", text, re.ASCII)
        if match:
            months = sign * (int(match.group(1)) * 12 + int(match.group(2)))
            return checked(source, Duration(months=months), at)
    elif first in _FIELDS and last in _FIELDS and _FIELDS.index(first) < _FIELDS.index(last):
        names = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
        parts = re.split(r"[ :]", text)
        if len(parts) == len(names) and all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", part, re.ASCII) for part in parts):
            total = sum(Fraction(part) * _MICROS[name] for part, name in zip(parts, names, strict=True))
            return checked(source, Duration(sign * round(total)), at)
    raise SqlError(f"'{text}' is not an interval {unit} TO {to}".upper(), location=source.location(at))


class DurationReader:
    """Reads durations from a list of tokens."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.next = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """The next token, or None at the end."""
        i = self.next + ahead
        return self.tokens[i] if i < len(self.tokens) else None

    def word(self, ahead: int = 0) -> str:
        """The next word in upper case; empty if the next token is not a word."""
        token = self.peek(ahead)
        if token is None or token.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER):
            return ""
        return token.text.upper()

    def take(self) -> Token:
        """Consume the next token."""
        token = self.peek()
        if token is None:
            last = self.tokens[-1].end + 1 if self.tokens else len(self.source.text)
            raise SqlError("unexpected end of the text", location=self.source.location(last))
        self.next += 1
        return token

    def unit(self) -> str | None:
        """Consume a unit, if one comes next."""
        word = self.word()
        if word and word.isalpha() and word not in _NO_UNITS:
            self.take()
            return word
        return None

    def number(self, form: re.Pattern[str] = _NUMBER) -> str | None:
        """Consume a number, if one comes next; raises for other forms, and for the suffixes of Spark's numbers."""
        token = self.peek()
        if token is None or token.token_type is not TokenType.NUMBER:
            return None
        self.take()
        # `10D` and `5L` are split by the tokenizer into number, `::` and type.
        if (after := self.peek()) is not None and after.token_type is TokenType.DCOLON:
            raise SqlError("a number with a suffix is not allowed here", location=self.source.token(token))
        if not form.fullmatch(token.text):
            raise SqlError(f"'{token.text}' is not a plain number", location=self.source.token(token))
        return token.text

    def duration(self) -> Duration:
        """Read a duration: a number with or without a unit, or an INTERVAL."""
        token = self.peek()
        if self.word() == "INTERVAL":
            self.take()
            return self._interval()
        number = self.number()
        if number is None or token is None:
            raise SqlError(
                f"expected a duration, got '{token.text}'" if token else "expected a duration",
                hint="such as 10 MINUTES or INTERVAL '10' MINUTE",
                location=self.source.token(token) if token else self.source.location(len(self.source.text)),
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
                raise SqlError("expected an interval such as INTERVAL '10' MINUTE", location=self.source.location(at))
            total += duration_of(self.source, sign + number, unit, at)
            first = False
            after = self.peek()
            if after is None or after.token_type is not TokenType.NUMBER:
                return checked(self.source, total, at)
