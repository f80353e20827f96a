"""`CREATE TABLE … FROM 'file'`, parsed by the client: the file is read by this process and not by the server.

The SQL parser of `tureen.language` needs packages of the extra `engine`, which a client may not have. Statements that
do not have exactly this form go to the server, whose parser reports what is wrong with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tureen.errors import Location, TureenError
from tureen.schema import Schema

_COMMENT = r"--[^\n]*|/\*.*?\*/"
_STRING = r"'(?:[^'\\]|\\.|'')*'" + "|" + r'"(?:[^"\\]|\\.|"")*"'
_COMMENT_OR_QUOTED = re.compile(rf"(?P<comment>{_COMMENT})|{_STRING}|`(?:[^`]|``)*`", re.DOTALL)
_CREATE = re.compile(rf"(?:\s|{_COMMENT})*CREATE\b", re.IGNORECASE | re.DOTALL)
_CREATE_TABLE = re.compile(
    rf"""
    \s* CREATE \s+ TABLE \s+
    (?P<if_not_exists> IF \s+ NOT \s+ EXISTS \s+ )?
    (?P<name> `(?:[^`]|``)+` | (?=\w*[^\W\d])\w+ ) \s*
    (?: \( (?P<columns> (?: [^()'"`] | `[^`]*` | \([^()'"`]*\) )* ) \) \s* )?
    FROM \s* (?= (?: [^\\] | \\[^u0-9%_] )* \Z )         # not the escapes that only SQL has
    (?P<file> {_STRING} )
    [\s;]*
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)|(['\"])\2", re.DOTALL)
_CONTROL = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class CreateFromFile:
    """`CREATE TABLE [IF NOT EXISTS] name [(columns)] FROM 'file'`; `position` is that of the name."""

    name: str
    schema: Schema | None
    file: str
    if_not_exists: bool
    position: Location


def parse_create_from_file(text: str) -> CreateFromFile | None:
    r"""Parse a statement of that form; None for any other text.

    >>> parse_create_from_file("CREATE TABLE t (a INT) /* rows */ FROM 'a.csv';").file
    'a.csv'
    >>> parse_create_from_file("CREATE TABLE t (a INT)")
    """
    if not _CREATE.match(text):
        return None
    # Blanks instead of comments keep the offsets.
    blanked = _COMMENT_OR_QUOTED.sub(lambda part: _blank(part) if part["comment"] else part[0], text)
    match = _CREATE_TABLE.fullmatch(blanked)
    if match is None:
        return None
    try:
        schema = None if match["columns"] is None else Schema.parse(match["columns"])
    except TureenError:
        # The server's parser knows the line and the column.
        return None
    return CreateFromFile(
        _unquoted_name(match["name"]),
        schema,
        _unquoted_string(match["file"]),
        match["if_not_exists"] is not None,
        _position(text, match.start("name")),
    )


def _blank(part: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", part[0])


def _unquoted_name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _unquoted_string(text: str) -> str:
    r"""The value of a string literal.

    >>> _unquoted_string(r"'it''s \\ here'")
    "it's \\ here"
    """
    return _ESCAPE.sub(lambda escape: escape[2] or _CONTROL.get(escape[1], escape[1]), text[1:-1])


def _position(text: str, offset: int) -> Location:
    return Location(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
