"""`PUNCTUATE stream WHERE …`: the conditions of a punctuation."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from tureen.errors import InvalidPunctuation, SqlError
from tureen.language.moments import read_timestamp
from tureen.language.text.statement_reader import StatementReader
from tureen.punctuation import Punctuation, Range
from tureen.schema import name_key
from tureen.window import from_micros

_HINT = "write column = value, column IN (…), column BETWEEN … AND … or column <= value, joined by AND"
_NUMBER = re.compile(r"(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""The numbers of all types: at most 38 digits, or an exponent of a DOUBLE."""
_ENDS = {">": ("low", True), ">=": ("low", False), "<": ("high", True), "<=": ("high", False)}


def read_punctuation(reader: StatementReader) -> Punctuation:
    """Read conditions that are joined by AND; two comparisons of one column are the ends of a range."""
    where: dict[str, Any] = {}
    names: dict[str, str] = {}
    while True:
        location, name = reader.location(), reader.name("column")
        pattern = _read_pattern(reader)
        name = names.setdefault(name_key(name), name)
        if name in where:
            combined = _combined(where[name], pattern)
            if combined is None:
                raise SqlError(f"duplicate condition of column '{name}'", hint=_HINT, location=location)
            pattern = combined
        where[name] = pattern
        if not reader.accept("AND"):
            break
    if reader.word() == "OR":
        raise SqlError(
            "OR is not allowed in a punctuation", hint="use IN, or several statements", location=reader.location()
        )
    return Punctuation.of(where)


def _read_pattern(reader: StatementReader) -> Any:
    if reader.accept("="):
        return _value(reader)
    if reader.accept("IN"):
        return _values(reader)
    if reader.accept("BETWEEN"):
        low = _value(reader)
        reader.expect("AND", "write BETWEEN low AND high")
        return Range(low, _value(reader))
    word = reader.word()
    if word not in _ENDS:
        raise reader.syntax_error("a comparison", _HINT)
    reader.take()
    end, is_open = _ENDS[word]
    return Range(**{end: _value(reader), f"{end}_open": is_open})


def _values(reader: StatementReader) -> list[Any]:
    if not reader.accept("("):
        raise reader.syntax_error("values in parentheses", "such as item IN (180, 181)")
    values = [_value(reader)]
    while reader.accept(","):
        values.append(_value(reader))
    if not reader.accept(")"):
        raise reader.syntax_error("a comma or a parenthesis", "such as item IN (180, 181)")
    return values


def _value(reader: StatementReader) -> Any:
    word, hint = reader.word(), "values are numbers, texts in quotes, TRUE, FALSE, DATE '…' and TIMESTAMP '…'"
    location = reader.location()
    if word == "NULL":
        raise InvalidPunctuation("NULL cannot be punctuated", hint="NULL equals no value", location=location)
    if word in ("TRUE", "FALSE"):
        reader.take()
        return word == "TRUE"
    if word in ("TIMESTAMP", "DATE"):
        reader.take()
        text = reader.string(f"a {word} in quotes", hint)
        micros = read_timestamp(text) if word == "TIMESTAMP" else None
        if word == "TIMESTAMP" and micros is None:
            raise SqlError(f"'{text}' is not a TIMESTAMP", location=location)
        return text if micros is None else from_micros(micros)
    negative = reader.accept("-")
    number = reader.number(_NUMBER)
    if number is not None:
        value = int(number) if number.isdigit() else Decimal(number)
        return -value if negative else value
    if negative:
        raise reader.syntax_error("a number", hint)
    return reader.string("a value", hint)


def _combined(first: Any, second: Any) -> Range | None:
    """The range between two comparisons, one of each side; None if they are others."""
    if not (isinstance(first, Range) and isinstance(second, Range)):
        return None
    if first.low is None and second.high is None:
        first, second = second, first
    if first.high is not None or second.low is not None:
        return None
    return Range(first.low, second.high, first.low_open, second.high_open)
