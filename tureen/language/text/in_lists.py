"""Long lists of constants after IN, read as one token: sqlglot would create several tokens and nodes per constant.

The text is tokenized with each list replaced by a number. If a replaced list turns out not to be between the
parentheses of an IN, because it is inside a string or a comment, sqlglot tokenizes the original text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlglot.tokens import Token, TokenType

from tureen.language.literals import read_number
from tureen.language.source import Source
from tureen.language.tree import INT, STRING, Const
from tureen.language.types import integer_range
from tureen.schema import Kind

LONG_TEXT = 4_096
"""Texts with fewer characters are not searched for lists."""

LONG_LIST = 2_048
"""Lists with fewer characters are not replaced."""

LIST = TokenType.HEREDOC_STRING
"""The token type of a list. Spark's SQL has no such token, so sqlglot parses it as a value."""

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
    """The tokens of a text, each long list as one token."""
    spans = _long_lists(text) if len(text) >= LONG_TEXT else ()
    if not spans:
        return tokenize(text)
    parts, end = [], 0
    for span in spans:
        parts += [text[end : span.start], "0"]
        end = span.end
    return _restored(text, spans, tokenize("".join([*parts, text[end:]]))) or tokenize(text)


def items_of(raw: str) -> list[str]:
    """The text of each constant of a list."""
    return _ITEM[raw.startswith("'")].findall(raw)


def count_items(raw: str) -> int:
    """The number of constants of a list; much faster than finding each."""
    return raw.count("'") // 2 if raw.startswith("'") else raw.count(",") + 1


def constants_of(source: Source, start: int, end: int) -> list[Const]:
    """The constants of a list."""
    matches = _ITEM[source.text[start] == "'"].finditer(source.text, start, end)
    if source.text[start] == "'":
        return [Const(match.group()[1:-1], STRING, match.start()) for match in matches]
    return [_number(source, match.group(), match.start()) for match in matches]


def _number(source: Source, text: str, at: int) -> Const:
    if "." not in text and _LEAST <= int(text) <= _GREATEST:
        return Const(int(text), INT, at + (text[0] == "-"))
    # The sign is part of the value, but the literal's offset is that of its first digit.
    negative = text[0] == "-"
    return read_number(source, text[negative:], at + negative, negative)


_LEAST, _GREATEST = integer_range(Kind.INT)


@lru_cache(maxsize=8)
def _long_lists(text: str) -> tuple[_Span, ...]:
    """Find candidates for long lists. No character is scanned for two candidates, so the scan is linear.

    Several passes ask for the same text, and a scan of a long one keeps the interpreter from all other threads.
    """
    spans = []
    scanned = 0
    for start in _START.finditer(text):
        at = start.end()
        if at < scanned:
            continue
        items = next((match for pattern in _ITEMS if (match := pattern.match(text, at))), None)
        if items is not None:
            scanned = items.end()
            if scanned - at >= LONG_LIST:
                spans.append(_Span(at, scanned))
        else:
            scanned = max(_scan_end(text, at), at)
    return tuple(spans)


def _scan_end(text: str, at: int) -> int:
    """Where the scan for a list that turned out to be none ended."""
    matches = [pattern.match(text, at) for pattern in _UNCLOSED]
    return max((match.end() for match in matches if match), default=at)


_UNCLOSED = [re.compile(rf"{item}(?:{_BLANKS},{_BLANKS}{item})*+") for item in (_NUMBER, _STRING)]


def _restored(text: str, spans: Sequence[_Span], tokens: list[Token]) -> list[Token] | None:
    """The tokens at their original offsets, with the lists; None if a replaced text is not a list after IN."""
    restored: list[Token] = []
    shift, remaining = 0, list(reversed(spans))
    for index, token in enumerate(tokens):
        start, end = token.start + shift, token.end + shift
        kind, word = token.token_type, token.text
        if remaining and start >= remaining[-1].start:
            span = remaining.pop()
            around = tuple(neighbour.token_type for neighbour in tokens[index - 2 : index + 2])
            if start != span.start or around != _AROUND:
                return None
            kind, word, end = LIST, text[span.start : span.end], span.end - 1
            shift += span.end - span.start - 1
        restored.append(Token(kind, word, token.line, token.col, start, end, token.comments))
    return None if remaining else restored
