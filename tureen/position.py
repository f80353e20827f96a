"""Positions: opaque strings that compare by age.

An answer's position is the commit that it reflects, the count of pushes whose rows it includes, and a mark for each
stream that it is computed from: changes continue from the marks. The answer of a query with groups changes also as time
passes, so its position has the answer's NOW too. A push's position is the commit that was current, the
count of pushes up to it, and its end in its stream's log. Of one commit and one count, an answer's position compares
later than a push's: the answer includes the push.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tureen import handle
from tureen.errors import TureenError

_SEQ = "[0-9]{1,18}"
_MARK = re.compile(
    rf"({_SEQ})\.({_SEQ})(?:p({_SEQ}))?(?:x({_SEQ}))?(?:\.({handle.PATTERN})(?:\.({handle.NUMBER_PATTERN}))?)?"
)
_PUSH = re.compile(rf"({_SEQ})_({_SEQ})\.({_SEQ})\.({_SEQ})")
_MARKS = "(?:[^-@*#]+(?:-[^-@*#]+)*)?"
_NOW = "(?:@([0-9]{19}))?"
_MEMBERS = f"(?:#({_SEQ}))?"
_UNREAD = rf"\*([0-9a-f]{{16}})(?:\.({handle.PATTERN}))?(?:_({_SEQ}))?\*({_MARKS}){_NOW}{_MEMBERS}"
_ANSWER = re.compile(rf"({_SEQ})_({_SEQ})~({_MARKS}){_NOW}{_MEMBERS}(?:{_UNREAD})?")
_SHIFT = 1 << 62
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


_NO_QUERY = QueryKey()


class Mark(NamedTuple):
    """How far the changes of a stream were read: all tuples with an id below `next_id`.

    Of the tuple `next_id` itself, the first `rows` of its joined rows were read too, and of the row after these (or of
    the tuple, without a join) the changes of the queries up to `after`. In a feed, `rows` includes that row: all
    changes of the tuple up to the row of that number of the query `after` were read; 0 is the row without a join.

    Of the stream's punctuations, those with a smaller number than `punctuations` were read; if it is None, those that
    stand before a tuple with an id below `next_id`.
    """

    next_id: int
    after: QueryKey = _NO_QUERY
    rows: int = 0
    punctuations: int | None = None

    @property
    def is_within(self) -> bool:
        """Whether some changes of the tuple `next_id` were read, and not all of them."""
        return self.rows > 0 or self.after != _NO_QUERY

    def __str__(self) -> str:
        """The text within a position."""
        rows = f"x{self.rows}" if self.rows else ""
        after = f".{self.after}" if self.after.handle else ""
        punctuations = "" if self.punctuations is None else f"p{self.punctuations:015d}"
        return f"{self.next_id:015d}{punctuations}{rows}{after}"


@dataclass(frozen=True, slots=True)
class UnreadChanges:
    """What was not read up to a position, since these marks.

    Of groups, the changes of those with a number above `after`. In a feed, those of the query, and the groups of all
    queries after it; without a query, the groups of all queries. A feed also tells the commit since which they were
    not read.

    Of the punctuations of a join, all but the first `after`; with 0, none was read, and the position may be in the
    middle of rows.
    """

    after: int
    marks: Mapping[int, Mark] = field(default_factory=dict)
    now: int | None = None
    query: str = ""
    seq: int = 0
    members: int | None = None

    def __str__(self) -> str:
        """The text within a position."""
        query, seq = f".{self.query}" if self.query else "", f"_{self.seq:015d}" if self.seq else ""
        of_answer = f"{_marks_text(self.marks)}{_now_text(self.now)}{_members_text(self.members)}"
        return f"*{self.after:016x}{query}{seq}*{of_answer}"


@dataclass(frozen=True, slots=True)
class Position:
    """A commit, a mark for each stream that was read, and the count of pushes whose rows are included.

    For groups also NOW, and those whose changes were not read yet; for those of a template, the number that its next
    query takes: queries with this number and greater ones were added later.

    >>> position = Position(7, {1: Mark(90, punctuations=8), 2: Mark(5, QueryKey("f" * 32, 3), rows=4)}, 12)
    >>> Position.parse(str(position)) == position
    True
    >>> str(PushPosition(7, 1, 400, 12)) < str(position) < str(PushPosition(7, 1, 464, 13)) < str(Position(8))
    True
    >>> within = Position(8, {1: Mark(99)}, 13, now=-5, unread=UnreadChanges(255, {1: Mark(90)}, now=-9))
    >>> unread = UnreadChanges(255, {1: Mark(90)}, now=-9, query="f" * 32, seq=7)
    >>> in_feed = Position(8, {1: Mark(99)}, 13, now=-5, unread=unread)
    >>> of_template = Position(8, {1: Mark(99)}, 13, -5, UnreadChanges(255, {1: Mark(90)}, -9, members=3), members=4)
    >>> all(Position.parse(str(each)) == each for each in (within, in_feed, of_template))
    True
    """

    seq: int
    marks: Mapping[int, Mark] = field(default_factory=dict)
    pushes: int = 0
    now: int | None = None
    unread: UnreadChanges | None = None
    members: int | None = None

    def __str__(self) -> str:
        """The text that users see."""
        of_answer = f"{_marks_text(self.marks)}{_now_text(self.now)}{_members_text(self.members)}"
        text = f"{self.seq:015d}_{self.pushes:015d}~{of_answer}"
        return text if self.unread is None else f"{text}{self.unread}"

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
    return _parse(str(text))


@lru_cache(maxsize=256)
def _parse(text: str) -> Position | PushPosition:
    """The same; followers that have read up to the same push have the same position."""
    if push := _PUSH.fullmatch(text):
        commit, count, source, end = map(int, push.groups())
        return PushPosition(commit, source, end, count)
    if answer := _ANSWER.fullmatch(text):
        seq, pushes, marks, now, members, *of_unread = answer.groups()
        after, query, since, unread_marks, unread_now, unread_members = of_unread
        read, unread = _marks(marks), _marks(unread_marks or "")
        if read is not None and unread is not None:
            groups = None
            if after is not None:
                number = _number(unread_members)
                groups = UnreadChanges(int(after, 16), unread, _now(unread_now), query or "", int(since or 0), number)
            return Position(int(seq), read, int(pushes), _now(now), groups, _number(members))
    # Feeds had a tilde where positions have a hyphen now.
    elif answer := _BEFORE_PUSHES.fullmatch(text.replace("~", "-")):
        read = _marks(answer.group(3).removeprefix("-"))
        if read is not None:
            return Position(int(answer.group(1)), read)
    elif push := _PUSH_BEFORE_PUSHES.fullmatch(text):
        return PushPosition(*map(int, push.groups()))
    elif old := _ANSWER_OF_FORMAT_3.fullmatch(text):
        seq, stream, next_id, member = old.groups()
        after = QueryKey() if member is None else QueryKey("", int(member) - 1)
        return Position(int(seq), {int(stream): Mark(int(next_id), after)})
    raise TureenError(f"'{text[:80]}' is not a position", hint="use the position of a push, an answer or a change")


def _marks_text(marks: Mapping[int, Mark]) -> str:
    return "-".join(f"{stream:06d}.{mark}" for stream, mark in sorted(marks.items()))


def _now_text(now: int | None) -> str:
    """NOW within a position; shifted, so that texts of instants before 1970 compare too."""
    return "" if now is None else f"@{now + _SHIFT:019d}"


def _members_text(members: int | None) -> str:
    return "" if members is None else f"#{members:015d}"


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _now(text: str | None) -> int | None:
    return None if text is None else int(text) - _SHIFT


def _marks(text: str) -> dict[int, Mark] | None:
    """The marks in a part of a position; None if one of them is not a mark."""
    marks = [_MARK.fullmatch(mark) for mark in text.split("-") if text]
    return dict(_mark(mark) for mark in marks if mark is not None) if all(marks) else None


def _mark(match: re.Match[str]) -> tuple[int, Mark]:
    stream, next_id, punctuations, rows, template, number = match.groups()
    after = QueryKey(template or "", -1 if number is None else int(number))
    read = None if punctuations is None else int(punctuations)
    return int(stream), Mark(int(next_id), after, int(rows or 0), read)


BEGINNING = str(Position(0))
"""The position before everything."""


class Pushed(str):
    """The position of a push; `added` is the number of rows it added: 0 where its key was used before.

    `rejected` is the number of its rows that were rejected, because earlier punctuations close them. `repeated` tells
    whether its key was used before; in a client it is always False.

    >>> position = Pushed("000000000000007_000000000000012.000001.000000000000400", 3, 1)
    >>> position.added, position.rejected, parse_position(position).end
    (3, 1, 400)
    """

    added: int
    rejected: int
    repeated: bool

    def __new__(cls, position: str, added: int = 0, rejected: int = 0, *, repeated: bool = False) -> Pushed:
        """The position as a text, with the numbers beside it."""
        pushed = super().__new__(cls, position)
        pushed.added, pushed.rejected, pushed.repeated = added, rejected, repeated
        return pushed
