"""Text split into statements at semicolons, except for those in strings, quoted names and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"""
      '(?:[^'\\]|\\.)*'                 # a string
    | "(?:[^"\\]|\\.)*"                 # a string, too
    | `[^`]*`                           # a quoted name
    | --[^\n]*                          # a comment to the end of the line
    | /\*.*?\*/                         # a comment
    | (?P<open>['"`]|/\*)               # any of these, unterminated
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""Commands that other shells have as words."""

_EMPTY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


@dataclass(frozen=True)
class Pieces:
    """The statements of a text, and the rest after the last semicolon."""

    statements: tuple[str, ...]
    rest: str

    @property
    def all_statements(self) -> tuple[str, ...]:
        """The statements, including a last one without a semicolon."""
        return self.statements if is_empty(self.rest) else (*self.statements, self.rest.strip())


def split(text: str) -> Pieces:
    r"""Split a text into statements without their semicolons.

    >>> split("SHOW STREAMS; INVOKE `a;b` -- no; this\n; SELECT ';'")
    Pieces(statements=('SHOW STREAMS', 'INVOKE `a;b` -- no; this'), rest=" SELECT ';'")
    """
    statements, start = [], 0
    for part in _PART.finditer(text):
        if part.group("open"):
            break
        if part.group("end"):
            statement = text[start : part.start()]
            if not is_empty(statement):
                statements.append(statement.strip())
            start = part.end()
    return Pieces(tuple(statements), text[start:])


def is_empty(text: str) -> bool:
    """Whether a text consists of blanks and comments only."""
    return _EMPTY.fullmatch(text) is not None


def command_of(text: str) -> str | None:
    r"""The shell command in a text, or None.

    >>> command_of(" \\d trades "), command_of("Exit;"), command_of("SELECT 1")
    ('\\d trades', '\\q', None)
    """
    text = text.strip()
    return text if text.startswith("\\") else WORDS.get(text.rstrip(";").rstrip().lower())


def first_word(text: str) -> str:
    r"""The first word of a statement, in upper case.

    >>> first_word("-- a comment\n create stream s (n INT)")
    'CREATE'
    """
    start = _EMPTY.match(text)
    return re.split(r"\W", text[start.end() if start else 0 :], maxsplit=1)[0].upper()


def is_complete(text: str) -> bool:
    r"""Whether Enter submits the input: it ends with a semicolon, or is a shell command.

    >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete(r"\d"), is_complete("")
    (True, False, True, True)
    """
    return command_of(text) is not None or is_empty(split(text).rest)
