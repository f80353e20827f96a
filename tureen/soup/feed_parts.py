"""The changes of one read of a feed, stream by stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tureen.position import Mark, Position, QueryKey
from tureen.results.answer import Change
from tureen.soup.feed_groups import FeedGroups
from tureen.xml_template import Part


class FeedRow(NamedTuple):
    """A row that joined an answer because a tuple arrived."""

    tuple_id: int
    joined: int
    """The number of a joined row among those of the tuple in one query, from 1 on; 0 for a query over one stream."""
    key: QueryKey
    row: dict[str, object]
    label: str | int | None = None

    @property
    def order(self) -> tuple[int, int, QueryKey]:
        """The order in a feed: by tuple, then the rows of queries over one stream, first joined rows, second ones."""
        return self.tuple_id, self.joined, self.key


class FeedPart(NamedTuple):
    """The changes that new tuples of one stream make, with the tuples of others before their marks."""

    stream: int
    end: int
    """The tuple of the stream before which this part ends."""
    marks: Mapping[int, Mark]
    """How far each stream was read before."""
    rows: Sequence[FeedRow] = ()

    @property
    def first(self) -> int:
        """The tuple of the stream at which this part begins."""
        return self.marks[self.stream].next_id

    def is_read(self, entry: FeedRow) -> bool:
        """Whether a row was read before: its tuple is the first one, and its mark is not before the row."""
        mark = self.marks[self.stream]
        return entry.order <= (mark.next_id, mark.rows, mark.after)


@dataclass(frozen=True)
class FeedChanges:
    """The rows that joined any of the answers, stream by stream."""

    end: Position
    parts: Sequence[FeedPart] = ()
    groups: FeedGroups | None = None
    """None if no query has groups."""
    templates: Mapping[str, Part] = field(default_factory=dict)
    """What renders the rows of queries in WXQuery as XML, by their handles."""

    def __len__(self) -> int:
        """The number of changes."""
        return sum(len(part.rows) for part in self.parts) + (0 if self.groups is None else len(self.groups))

    def position(self) -> str:
        """The position after all of them."""
        return str(self.end)

    @property
    def due(self) -> float | None:
        """After how many seconds time alone may change groups; None if it does not."""
        return None if self.groups is None else self.groups.due

    def __iter__(self) -> Iterator[Change]:
        """The rows: of each stream in order of arrival, and of one tuple in the order of `FeedRow`; then groups."""
        unread = None if self.groups is None else self.groups.unread
        place = replace(self.end, unread=unread)
        for part in self.parts:
            marks, rows = dict(part.marks), part.rows
            for index, entry in enumerate(rows):
                more = index + 1 < len(rows) and rows[index + 1].tuple_id == entry.tuple_id
                mark = Mark(entry.tuple_id, entry.key, entry.joined) if more else Mark(entry.tuple_id + 1)
                marks[part.stream] = mark
                query, position = str(entry.key), str(replace(place, marks=marks))
                yield Change(query, entry.row, position, entry.label, template=self.templates.get(query))
        for change in self.groups or ():
            template = self.templates.get(change.query)
            yield change if template is None else replace(change, template=template)


def unread_parts(before: Mapping[int, Mark], ends: Mapping[int, int]) -> Iterator[FeedPart]:
    """The parts of a feed between marks and ends, without rows.

    First the rest of a tuple of which some changes were read, because its joined rows were counted with the marks of
    that read; then stream by stream, each with all tuples of those before it.
    """
    marks = dict(before)
    for stream, mark in sorted(before.items()):
        if mark.is_within and mark.next_id < ends[stream]:
            yield FeedPart(stream, mark.next_id + 1, dict(marks))
            marks[stream] = Mark(mark.next_id + 1)
    for stream, end in sorted(ends.items()):
        if end > marks[stream].next_id:
            yield FeedPart(stream, end, dict(marks))
            marks[stream] = Mark(end)
