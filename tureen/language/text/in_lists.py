"""Long lists of constants after IN, read as one token: sqlglot would make several tokens and nodes of each constant.

The text without its lists is tokenized, with a number in the place of each list. A list that does not stand between
the parentheses of an IN there, because it is within a string or a comment, is left to sqlglot with the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sqlglot.tokens import Token, TokenType

from tureen.language.literals import read_number
from tureen.language.source import Source
from tureen.language.tree import INT, STRING, Const
from tureen.language.types import integer_range
from tureen.schema import Kind

LONG_TEXT = 4_096
"""A text of fewer characters is not searched for lists."""

LONG_LIST = 2_048
"""Nor is a list of fewer characters taken out of it."""

LIST = TokenType.HEREDOC_STRING
"""The token of a list: one that Spark's SQL does not have, so that sqlglot takes it for a value anywhere else."""

_BLANKS = r"[ \t\r\n]*"
_NUMBER = r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?"
_STRING = r"'[^'\\]*'"
_START = re.compile(rf"\bIN{_BLANKS}\({_BLANKS}", re.IGNORECASE | re.ASCII)
_ITEMS = [re.compile(rf"{item}(?:{_BLANKS},{_BLANKS}{item})++(?={_BLANKS}\))") for item in (_NUMBER, _STRING)]
_ITEM = {False: re.compile(_NUMBER), True: re.compile(_STRING)}
_AROUND = (TokenType.IN, TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN)


class _Span(NamedTuple):
    start: int
    end: int


def tokenize_with_lists(text: str, tokenize: Callable[[str], list[Token]]) -> list[Token]:
    """The tokens of a text, with each long list as one."""
    spans = list(_long_lists(text)) if len(text) >= LONG_TEXT else []
    if not spans:
        return tokenize(text)
    parts, end = [], 0
    for span in spans:
        parts += [text[end : span.start], "0"]
        end = span.end
    return _restored(text, spans, tokenize("".join([*parts, text[end:]]))) or tokenize(text)


def items_of(raw: str) -> list[str]:
    """What is written for each constant of a list."""
    return _ITEM[raw.startswith("'")].findall(raw)


def constants_of(source: Source, start: int, end: int) -> list[Const]:
    """The constants of a list."""
    matches = _ITEM[source.text[start] == "'"].finditer(source.text, start, end)
    if source.text[start] == "'":
        return [Const(one.group()[1:-1], STRING, one.start()) for one in matches]
    return [_number(source, one.group(), one.start()) for one in matches]


def _number(source: Source, text: str, at: int) -> Const:
    if "." not in text and _LEAST <= int(text) <= _GREATEST:
        return Const(int(text), INT, at + (text[0] == "-"))
    # The sign belongs to the literal, and is not where it starts.
    negative = text[0] == "-"
    return read_number(source, text[negative:], at + negative, negative)


_LEAST, _GREATEST = integer_range(Kind.INT)


def _long_lists(text: str) -> Iterator[_Span]:
    """Where long lists may be; no character is looked at for two of them, so that the text is looked at once."""
    looked = 0
    for start in _START.finditer(text):
        at = start.end()
        if at < looked:
            continue
        items = next((found for one in _ITEMS if (found := one.match(text, at))), None)
        if items is not None:
            looked = items.end()
            if looked - at >= LONG_LIST:
                yield _Span(at, looked)
        else:
            looked = max(_reach(text, at), at)


def _reach(text: str, at: int) -> int:
    """How far it was looked for a list that is none."""
    reached = [one.match(text, at) for one in _BEGUN]
    return max((found.end() for found in reached if found), default=at)


_BEGUN = [re.compile(rf"{item}(?:{_BLANKS},{_BLANKS}{item})*+") for item in (_NUMBER, _STRING)]


def _restored(text: str, spans: list[_Span], tokens: list[Token]) -> list[Token] | None:
    """The tokens at their own places, with the lists; None where some list is none."""
    restored: list[Token] = []
    shift, left = 0, list(reversed(spans))
    for number, token in enumerate(tokens):
        start, end = token.start + shift, token.end + shift
        kind, word = token.token_type, token.text
        if left and start >= left[-1].start:
            span = left.pop()
            around = tuple(one.token_type for one in tokens[number - 2 : number + 2])
            if start != span.start or around != _AROUND:
                return None
            kind, word, end = LIST, text[span.start : span.end], span.end - 1
            shift += span.end - span.start - 1
        restored.append(Token(kind, word, token.line, token.col, start, end, token.comments))
    return None if left else restored
