"""A text cut into statements at its semicolons, but not at those in texts, names and comments."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"""
      '(?:[^'\\]|\\.)*'                 # a text
    | "(?:[^"\\]|\\.)*"                 # a text as well
    | `[^`]*`                           # a quoted name
    | --[^\n]*                          # a comment to the end of the line
    | /\*.*?\*/                         # a comment
    | (?P<open>['"`]|/\*)               # one of them that does not end
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
WORDS = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
"""Words that mean a command of the shell, as in other shells."""

_EMPTY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)


@dataclass(frozen=True)
class Pieces:
    """The statements of a text, and what comes after the last semicolon."""

    statements: tuple[str, ...]
    rest: str

    @property
    def whole(self) -> tuple[str, ...]:
        """All statements, the last one also where it has no semicolon."""
        return self.statements if is_empty(self.rest) else (*self.statements, self.rest.strip())


def split(text: str) -> Pieces:
    r"""Cut a text into statements, each without its semicolon.

    >>> split("SHOW STREAMS; INVOKE `a;b` -- no; this\n; SELECT ';'")
    Pieces(statements=('SHOW STREAMS', 'INVOKE `a;b` -- no; this'), rest=" SELECT ';'")
    """
    found, start = [], 0
    for part in _PART.finditer(text):
        if part.group("open"):
            break
        if part.group("end"):
            statement = text[start : part.start()]
            if not is_empty(statement):
                found.append(statement.strip())
            start = part.end()
    return Pieces(tuple(found), text[start:])


def is_empty(text: str) -> bool:
    """Whether a text is blanks and comments only."""
    return _EMPTY.fullmatch(text) is not None


def command_of(text: str) -> str | None:
    r"""The command of the shell that a text is, or None.

    >>> command_of(" \\d trades "), command_of("Exit;"), command_of("SELECT 1")
    ('\\d trades', '\\q', None)
    """
    text = text.strip()
    return text if text.startswith("\\") else WORDS.get(text.rstrip(";").rstrip().lower())


def first_word(text: str) -> str:
    r"""The word that a statement begins with, in capitals.

    >>> first_word("-- a comment\n create stream s (n INT)")
    'CREATE'
    """
    start = _EMPTY.match(text)
    return re.split(r"\W", text[start.end() if start else 0 :], maxsplit=1)[0].upper()


def is_complete(text: str) -> bool:
    r"""Whether Enter ends the input: nothing is open after the last semicolon, or it is a command of the shell.

    >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete(r"\d"), is_complete("")
    (True, False, True, True)
    """
    return command_of(text) is not None or is_empty(split(text).rest)
