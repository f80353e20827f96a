"""LIKE patterns: checked as in Spark, and normalized to one escape character."""

from __future__ import annotations

from tureen.errors import SqlError
from tureen.language.source import Source
from tureen.predicate import Interval

LAST = "\U0010ffff"


def read_pattern(source: Source, pattern: str, escape: str, at: int) -> str:
    r"""The pattern with `\` as its escape character and without repeated `%`; a needless escape is an error.

    >>> read_pattern(Source(""), "a/%b%%", "/", 0)
    'a\\%b%'
    """
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if character == "" or (character not in "%_" and character != escape):
                raise SqlError(
                    f"the escape '{escape}' in the pattern must be followed by '%', '_' or '{escape}'",
                    hint=f"write {escape * 2} for the character itself",
                    location=source.location(at),
                )
            out.append(f"\\{character}" if character in "%_\\" else character)
        elif character == "\\":
            out.append("\\\\")
        elif not (character == "%" and out and out[-1] == "%"):
            out.append(character)
    return "".join(out)


def plain_prefix(pattern: str) -> tuple[str, bool] | None:
    """The text of a pattern whose only wildcard, if any, is a final `%`, and whether there is one; None otherwise."""
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            out.append(next(characters))
        elif character == "%" and next(characters, None) is None:
            return "".join(out), True
        elif character in "%_":
            return None
        else:
            out.append(character)
    return "".join(out), False


def prefix_interval(prefix: str) -> Interval:
    """The interval of strings that start with a prefix, in the order of their UTF-8 bytes.

    >>> prefix_interval("ab")
    Interval(low='ab', high='ac', low_open=False, high_open=True)
    """
    base = prefix.rstrip(LAST)
    if not base:
        return Interval(prefix or None)
    # Code points compare like UTF-8 bytes; surrogates are not characters.
    after = ord(base[-1]) + 1
    successor = chr(0xE000 if 0xD800 <= after <= 0xDFFF else after)
    return Interval(prefix, base[:-1] + successor, False, True)
