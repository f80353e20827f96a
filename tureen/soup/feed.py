"""Following: what joined the answers of a query, of a template, or of all of somebody's queries since a position.

One look never waits. Whoever follows looks again after the next commit: a thread of its own (`follow` in
`tureen/soup/waiting.py`), or a server that wakes all of its followers at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tureen.arguments import check_text
from tureen.errors import QueryFailed, TureenError, UnknownQuery, UnknownStream, Unsupported
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.position import Position
from tureen.pot.queries import list_queries
from tureen.pot.streams import list_streams
from tureen.pot.templates import list_templates
from tureen.results.answer import Change
from tureen.results.changes import News
from tureen.results.invoke import Invoker
from tureen.results.matches import Matches
from tureen.soup.templates import Templates

SLICE = 1024
"""How many rows are made into Python's objects at a time."""


class Look(Protocol):
    """What one look found: changes, and where to go on after all of them."""

    def __len__(self) -> int:
        """How many changes."""

    def __iter__(self) -> Iterator[Change]:
        """The changes, in order of arrival."""

    def position(self) -> str:
        """Where to go on after all of them."""


@dataclass(frozen=True)
class QueryLook:
    """The rows that joined one query's answer."""

    handle: str
    news: News

    def __len__(self) -> int:
        """How many."""
        return len(self.news)

    def position(self) -> str:
        """Where to go on after all of them."""
        return self.news.position()

    def __iter__(self) -> Iterator[Change]:
        """The rows, in order of arrival."""
        for start in range(0, len(self), SLICE):
            for place, row in enumerate(self.news.rows.slice(start, SLICE).to_pylist(), start):
                yield Change(self.handle, row, self.news.position(place))


@dataclass(frozen=True)
class TemplateLook:
    """The rows that joined the answers of a template's queries."""

    handle: str
    found: Matches

    def __len__(self) -> int:
        """How many."""
        return len(self.found)

    def position(self) -> str:
        """Where to go on after all of them."""
        return self.found.position()

    def __iter__(self) -> Iterator[Change]:
        """The rows, in order of arrival and for one row in the order of the queries."""
        for start in range(0, len(self), SLICE):
            rows = self.found.news.rows.slice(start, SLICE).to_pylist()
            for place, row in enumerate(rows, start):
                handle = f"{self.handle}.{self.found.numbers[place]}"
                yield Change(handle, row, self.found.position(place), self.found.labels[place])


def _position(since: str | None) -> Position | None:
    return None if since is None else Position.parse(check_text(since, "a position"))


# All of somebody's queries at once


class Mark(NamedTuple):
    """How far a stream was told: up to an id, and of the tuple with that id up to a query."""

    ids: int
    after: tuple[str, int] = ("", -1)


_MARK = re.compile(r"([0-9]{6,18})\.([0-9]{15,18})(?:\.([0-9a-f]{32})(?:\.([0-9]{1,18}))?)?")


@dataclass(frozen=True)
class FeedPosition:
    """A place in all streams at once, so that a feed over many of them can be taken up again.

    >>> at = FeedPosition(7, {1: Mark(90), 2: Mark(5, ("f" * 32, 3))})
    >>> FeedPosition.parse(str(at)) == at
    True
    """

    seq: int
    marks: Mapping[int, Mark]

    def __str__(self) -> str:
        """The form that users see."""
        parts = [f"{self.seq:015d}"]
        for stream, mark in sorted(self.marks.items()):
            handle, number = mark.after
            told = "" if not handle else f".{handle}" if number < 0 else f".{handle}.{number}"
            parts.append(f"{stream:06d}.{mark.ids:015d}{told}")
        return "~".join(parts)

    @classmethod
    def parse(cls, text: str) -> FeedPosition:
        """Read a position that a feed gave."""
        seq, *rest = text.split("~")
        found = [_MARK.fullmatch(part) for part in rest]
        if not re.fullmatch(r"[0-9]{15,18}", seq) or not all(found):
            raise TureenError(f"'{text[:80]}' is no position of a feed", hint="take the one that a change gave")
        marks = {}
        for one in found:
            assert one is not None
            number = -1 if one.group(4) is None else int(one.group(4))
            marks[int(one.group(1))] = Mark(int(one.group(2)), (one.group(3) or "", number))
        return cls(int(seq), marks)


class Told(NamedTuple):
    """A row that joined some answer, in the order in which a feed tells."""

    ids: int
    key: tuple[str, int]
    row: dict[str, object]
    label: str | int | None = None

    @property
    def handle(self) -> str:
        """The handle of the query that it joined."""
        handle, number = self.key
        return handle if number < 0 else f"{handle}.{number}"


@dataclass(frozen=True)
class FeedLook:
    """The rows that joined any of the answers, stream by stream."""

    seq: int
    before: Mapping[int, Mark]
    after: Mapping[int, Mark]
    told: Mapping[int, Sequence[Told]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many."""
        return sum(len(rows) for rows in self.told.values())

    def position(self) -> str:
        """Where to go on after all of them."""
        return str(FeedPosition(self.seq, self.after))

    def __iter__(self) -> Iterator[Change]:
        """The rows: of each stream in order of arrival, and for one row in the order of the handles."""
        marks = dict(self.before)
        for stream in sorted(self.after):
            rows = self.told.get(stream, ())
            for place, one in enumerate(rows):
                more = place + 1 < len(rows) and rows[place + 1].ids == one.ids
                marks[stream] = Mark(one.ids, one.key) if more else Mark(one.ids + 1)
                yield Change(one.handle, one.row, str(FeedPosition(self.seq, marks)), one.label)
            marks[stream] = self.after[stream]


class Followed(NamedTuple):
    """Something that a feed follows: a query or a template, and its stream."""

    handle: str
    stream: int
    template: bool


class Looks:
    """Looks at answers as one owner sees them; an owner of None sees all."""

    def __init__(
        self,
        catalog: Catalog,
        invoker: Invoker,
        templates: Templates,
        owner: str | None,
        check: Callable[[str], None],
    ) -> None:
        """Look at what is in that pot; `check` refuses the handle of a query that the owner does not see."""
        self._catalog, self._invoker, self._templates = catalog, invoker, templates
        self._owner, self._check = owner, check

    def query(self, handle: str, since: str | None) -> QueryLook:
        """What joined a query's answer since a position; with none given, nothing yet."""
        self._check(handle)
        return QueryLook(handle, self._invoker.news(handle, _position(since)))

    def template(self, handle: str, since: str | None) -> TemplateLook:
        """What joined the answers of a template's queries since a position."""
        return TemplateLook(handle, self._templates.matches(handle, _position(since), self._owner))

    def all(self, since: str | None) -> FeedLook:
        """What joined any of the owner's answers since a position of a feed; with none given, nothing yet."""
        at = None if since is None else FeedPosition.parse(check_text(since, "a position"))
        with self._catalog.read() as tx:
            seq, ends = current_seq(tx), {stream.id: stream.next_id for stream in list_streams(tx)}
        after = {stream: Mark(end) for stream, end in ends.items()}
        if at is None:
            return FeedLook(seq, after, after)
        # A stream that the position does not know came later: all of it is new.
        before = {stream: at.marks.get(stream, Mark(0)) for stream in ends}
        moved = {stream for stream, end in ends.items() if end > before[stream].ids}
        if not moved:
            return FeedLook(at.seq, before, before)
        told: dict[int, list[Told]] = {}
        for one in self._followed():
            if one.stream in moved:
                told.setdefault(one.stream, []).extend(self._of(one, before[one.stream], ends[one.stream]))
        for rows in told.values():
            rows.sort(key=lambda row: (row.ids, row.key))
        return FeedLook(seq, before, after, told)

    def _followed(self) -> list[Followed]:
        """What the owner has, as it is now."""
        with self._catalog.read() as tx:
            singles = [Followed(one.id, one.stream_id, template=False) for one in list_queries(tx, self._owner)]
            templates = list_templates(tx, self._owner)
        return singles + [Followed(one.id, one.stream_id, template=True) for one in templates]

    def _of(self, one: Followed, since: Mark, end: int) -> Iterator[Told]:
        """What joined the answers of a query or a template, up to the tuple where this look ends."""
        at = Position(0, one.stream, 0, since.ids)
        try:
            if one.template:
                found = self._templates.matches(one.handle, at)
                news, numbers, labels = found.news, found.numbers.tolist(), found.labels
            else:
                news = self._invoker.news(one.handle, at)
                numbers, labels = [-1] * len(news), [None] * len(news)
        except (Unsupported, QueryFailed, UnknownQuery, UnknownStream):
            # It cannot be followed, or it has gone since it was listed; the others can.
            return
        rows = zip(news.ids.tolist(), numbers, news.rows.to_pylist(), labels, strict=True)
        for ids, number, row, label in rows:
            key = (one.handle, number)
            if ids < end and (ids > since.ids or key > since.after):
                yield Told(ids, key, row, label)
