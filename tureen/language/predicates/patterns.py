"""LIKE patterns: checked as Spark checks them, and written with one escape character."""

from __future__ import annotations

from tureen.errors import SqlError
from tureen.language.source import Source
from tureen.predicate import Interval

LAST = "\U0010ffff"


def read_pattern(source: Source, pattern: str, escape: str, at: int) -> str:
    r"""The pattern with `\` as its escape and without doubled `%`; an escape of nothing special is an error.

    >>> read_pattern(Source(""), "a/%b%%", "/", 0)
    'a\\%b%'
    """
    out: list[str] = []
    marks = iter(pattern)
    for one in marks:
        if one == escape:
            one = next(marks, "")
            if one == "" or (one not in "%_" and one != escape):
                raise SqlError(
                    f"the escape '{escape}' in the pattern stands before nothing that needs it",
                    hint=f"write {escape * 2} for the character itself",
                    place=source.place(at),
                )
            out.append(f"\\{one}" if one in "%_\\" else one)
        elif one == "\\":
            out.append("\\\\")
        elif not (one == "%" and out and out[-1] == "%"):
            out.append(one)
    return "".join(out)


def plain_prefix(pattern: str) -> tuple[str, bool] | None:
    """The text before the only `%`, at the end, and whether there is one; None for any other pattern."""
    out: list[str] = []
    marks = iter(pattern)
    for one in marks:
        if one == "\\":
            out.append(next(marks))
        elif one == "%" and next(marks, None) is None:
            return "".join(out), True
        elif one in "%_":
            return None
        else:
            out.append(one)
    return "".join(out), False


def prefix_interval(prefix: str) -> Interval:
    """The texts that start with a prefix, in the order of their UTF-8 bytes.

    >>> prefix_interval("ab")
    Interval(low='ab', high='ac', low_open=False, high_open=True)
    """
    stem = prefix.rstrip(LAST)
    if not stem:
        return Interval(prefix or None)
    # Code points compare as UTF-8 bytes do; the surrogates among them are no characters.
    after = ord(stem[-1]) + 1
    following = chr(0xE000 if 0xD800 <= after <= 0xDFFF else after)
    return Interval(prefix, stem[:-1] + following, False, True)
