"""Positions: opaque strings that compare by age.

An answer's position is the commit that it reflects, the count of pushes whose rows it includes, and a mark for each
stream that it is computed from: changes continue from the marks. A push's position is the commit that was current, the
count of pushes up to it, and its end in its stream's log. Of one commit and one count, an answer's position compares
later than a push's: the answer includes the push.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tureen import handle
from tureen.errors import TureenError

_SEQ = "[0-9]{1,18}"
_MARK = re.compile(rf"({_SEQ})\.({_SEQ})(?:x({_SEQ}))?(?:\.({handle.PATTERN})(?:\.({handle.NUMBER_PATTERN}))?)?")
_PUSH = re.compile(rf"({_SEQ})_({_SEQ})\.({_SEQ})\.({_SEQ})")
_ANSWER = re.compile(rf"({_SEQ})_({_SEQ})~((?:[^-]+(?:-[^-]+)*)?)")
_BEFORE_PUSHES = re.compile(rf"({_SEQ})()((?:-[^-]+)*)")
_PUSH_BEFORE_PUSHES = re.compile(rf"({_SEQ})\.({_SEQ})\.({_SEQ})")
"""Positions of versions that did not count pushes."""
_ANSWER_OF_FORMAT_3 = re.compile(rf"({_SEQ})\.({_SEQ})\.0+\.({_SEQ})(?:\.({_SEQ}))?")


class QueryKey(NamedTuple):
    """A query in the order of a feed: its handle, or its template's with the query's number."""

    handle: str = ""
    number: int = -1

    def __str__(self) -> str:
        """The query's handle."""
        return self.handle if self.number < 0 else handle.member_handle(self.handle, self.number)


class Mark(NamedTuple):
    """How far the changes of a stream were read: all tuples with an id below `next_id`.

    Of the tuple `next_id` itself, the first `rows` of its joined rows were read too, and of the row after these (or of
    the tuple, without a join) the changes of the queries up to `after`. In a feed, `rows` includes that row: all
    changes of the tuple up to the row of that number of the query `after` were read; 0 is the row without a join.
    """

    next_id: int
    after: QueryKey = QueryKey()
    rows: int = 0

    @property
    def is_within(self) -> bool:
        """Whether some changes of the tuple `next_id` were read, and not all of them."""
        return self.rows > 0 or self.after != QueryKey()

    def __str__(self) -> str:
        """The text within a position."""
        rows = f"x{self.rows}" if self.rows else ""
        after = f".{self.after}" if self.after.handle else ""
        return f"{self.next_id:015d}{rows}{after}"


@dataclass(frozen=True, slots=True)
class Position:
    """A commit, a mark for each stream that was read, and the count of pushes whose rows are included.

    >>> position = Position(7, {1: Mark(90), 2: Mark(5, QueryKey("f" * 32, 3), rows=4)}, 12)
    >>> Position.parse(str(position)) == position
    True
    >>> str(PushPosition(7, 1, 400, 12)) < str(position) < str(PushPosition(7, 1, 464, 13)) < str(Position(8))
    True
    """

    seq: int
    marks: Mapping[int, Mark] = field(default_factory=dict)
    pushes: int = 0

    def __str__(self) -> str:
        """The text that users see."""
        marks = "-".join(f"{stream:06d}.{mark}" for stream, mark in sorted(self.marks.items()))
        return f"{self.seq:015d}_{self.pushes:015d}~{marks}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the position of an answer or a change."""
        position = parse_position(text)
        if isinstance(position, PushPosition):
            raise TureenError(
                f"'{text}' is the position of a push",
                hint="changes continue from the position of an answer or a change",
            )
        return position


@dataclass(frozen=True, slots=True)
class PushPosition:
    """The commit that was current when rows were pushed, and where they end in their stream's inbox."""

    seq: int
    stream: int
    end: int
    pushes: int = 0

    def __str__(self) -> str:
        """The text that users see."""
        return f"{self.seq:015d}_{self.pushes:015d}.{self.stream:06d}.{self.end:015d}"


def parse_position(text: str) -> Position | PushPosition:
    """Read any position: of an answer, a change, a feed or a push."""
    text = str(text)
    if push := _PUSH.fullmatch(text):
        commit, pushes, source, end = map(int, push.groups())
        return PushPosition(commit, source, end, pushes)
    # Feeds had a tilde where positions have a hyphen now.
    if answer := _ANSWER.fullmatch(text) or _BEFORE_PUSHES.fullmatch(text.replace("~", "-")):
        marks = [_MARK.fullmatch(mark) for mark in answer.group(3).removeprefix("-").split("-") if answer.group(3)]
        if all(marks):
            read = dict(_mark(mark) for mark in marks if mark is not None)
            return Position(int(answer.group(1)), read, int(answer.group(2) or 0))
    elif push := _PUSH_BEFORE_PUSHES.fullmatch(text):
        return PushPosition(*map(int, push.groups()))
    elif old := _ANSWER_OF_FORMAT_3.fullmatch(text):
        seq, stream, next_id, member = old.groups()
        after = QueryKey() if member is None else QueryKey("", int(member) - 1)
        return Position(int(seq), {int(stream): Mark(int(next_id), after)})
    raise TureenError(f"'{text[:80]}' is not a position", hint="use the position of a push, an answer or a change")


def _mark(match: re.Match[str]) -> tuple[int, Mark]:
    stream, next_id, rows, template, number = match.groups()
    after = QueryKey(template or "", -1 if number is None else int(number))
    return int(stream), Mark(int(next_id), after, int(rows or 0))


BEGINNING = str(Position(0))
"""The position before everything."""


class Pushed(str):
    """The position of a push; `added` is the number of rows it added: 0 where its key was used before.

    >>> position = Pushed("000000000000007_000000000000012.000001.000000000000400", 3)
    >>> position.added, parse_position(position).end
    (3, 400)
    """

    added: int

    def __new__(cls, position: str, added: int = 0) -> Pushed:
        """The position as a text, with the number beside it."""
        pushed = super().__new__(cls, position)
        pushed.added = added
        return pushed
