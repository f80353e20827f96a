"""Following: the rows that joined the answers of a query, of a template, or of all of an owner's queries.

Reading changes never waits. A follower reads again after the next push or commit: in a thread of its own (`follow` in
`tureen/soup/waiting.py`), or in a server that wakes all of its followers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tureen.arguments import check_text
from tureen.errors import QueryFailed, TureenError, UnknownQuery, UnknownStream, Unsupported
from tureen.position import BEGINNING, Mark, Position, QueryKey
from tureen.pot.catalog import Catalog
from tureen.pot.queries import list_queries
from tureen.pot.templates import list_templates
from tureen.results.answer import Change
from tureen.results.changes import NewRows
from tureen.results.invoke import Invoker
from tureen.results.join_changes import NewJoinedRows
from tureen.results.template_matches import TemplateMatches
from tureen.soup.templates import Templates

SLICE = 1024
"""The number of rows that are converted to Python objects at a time."""


class ChangeBatch(Protocol):
    """Changes since a position, and the position after all of them."""

    def __len__(self) -> int:
        """The number of changes."""

    def __iter__(self) -> Iterator[Change]:
        """The changes, in order of arrival."""

    def position(self) -> str:
        """The position after all of them."""


@dataclass(frozen=True)
class QueryChanges:
    """The rows that joined one query's answer."""

    handle: str
    new: NewRows | NewJoinedRows

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.new)

    def position(self) -> str:
        """The position after all of them."""
        return self.new.position()

    def __iter__(self) -> Iterator[Change]:
        """The rows, in order of arrival."""
        for start in range(0, len(self), SLICE):
            for index, row in enumerate(self.new.rows.slice(start, SLICE).to_pylist(), start):
                yield Change(self.handle, row, self.new.position(index))


@dataclass(frozen=True)
class TemplateChanges:
    """The rows that joined the answers of a template's queries."""

    matches: TemplateMatches

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.matches)

    def position(self) -> str:
        """The position after all of them."""
        return self.matches.position()

    def __iter__(self) -> Iterator[Change]:
        """The rows, in order of arrival and for one row in the order of the queries."""
        matches = self.matches
        for start in range(0, len(self), SLICE):
            rows = matches.rows.slice(start, SLICE).to_pylist()
            for index, row in enumerate(rows, start):
                key = QueryKey(matches.template, int(matches.numbers[index]))
                yield Change(str(key), row, matches.position(index), matches.labels[index])


class FeedRow(NamedTuple):
    """A row that joined an answer, in the order of a feed: by tuple id, then by query."""

    tuple_id: int
    key: QueryKey
    row: dict[str, object]
    label: str | int | None = None


@dataclass(frozen=True)
class FeedChanges:
    """The rows that joined any of the answers, stream by stream."""

    seq: int
    pushes: int
    before: Mapping[int, Mark]
    after: Mapping[int, Mark]
    rows: Mapping[int, Sequence[FeedRow]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of changes."""
        return sum(len(rows) for rows in self.rows.values())

    def position(self) -> str:
        """The position after all of them."""
        return str(Position(self.seq, self.after, self.pushes))

    def __iter__(self) -> Iterator[Change]:
        """The rows: of each stream in order of arrival, and for one row in the order of the handles."""
        marks = dict(self.before)
        for stream in sorted(self.after):
            rows = self.rows.get(stream, ())
            for index, entry in enumerate(rows):
                more = index + 1 < len(rows) and rows[index + 1].tuple_id == entry.tuple_id
                marks[stream] = Mark(entry.tuple_id, entry.key) if more else Mark(entry.tuple_id + 1)
                yield Change(str(entry.key), entry.row, str(Position(self.seq, marks, self.pushes)), entry.label)
            marks[stream] = self.after[stream]


class Followed(NamedTuple):
    """A query or a template that a feed follows, and its stream."""

    handle: str
    stream: int
    is_template: bool


class ChangeReader:
    """Reads changes of the answers that an owner sees; an owner of None sees all."""

    def __init__(
        self,
        catalog: Catalog,
        invoker: Invoker,
        templates: Templates,
        owner: str | None,
        check: Callable[[str], None],
    ) -> None:
        """Read the changes of a pot; `check` raises for the handle of a query that the owner does not see."""
        self._catalog, self._invoker, self._templates = catalog, invoker, templates
        self._owner, self._check = owner, check

    def query(self, handle: str, since: str | None) -> QueryChanges:
        """What joined a query's answer since a position; without one, nothing yet."""
        self._check(handle)
        return QueryChanges(handle, self._invoker.new_rows(handle, _parse(since)))

    def template(self, handle: str, since: str | None) -> TemplateChanges:
        """What joined the answers of a template's queries since a position."""
        return TemplateChanges(self._templates.matches(handle, _parse(since), self._owner))

    def all(self, since: str | None) -> FeedChanges:
        """What joined any of the owner's answers since a position; without one, nothing yet."""
        position = _parse(since)
        if position is not None and not position.marks and str(position) != BEGINNING:
            raise TureenError(
                "the position is not one of a feed", hint="a feed continues from the position of one of its changes"
            )
        snapshot = self._invoker.snapshot()
        seq, pushes = snapshot.seq, snapshot.pushes
        ends = {stream: state.stream.next_id for stream, state in snapshot.streams.items()}
        after = {stream: Mark(end) for stream, end in ends.items()}
        if position is None:
            return FeedChanges(seq, pushes, after, after)
        # All of a stream is new that the position does not name: it was created later.
        before = {stream: position.marks.get(stream, Mark(0)) for stream in ends}
        grown = {stream for stream, end in ends.items() if end > before[stream].next_id}
        if not grown:
            return FeedChanges(position.seq, position.pushes, before, before)
        rows: dict[int, list[FeedRow]] = {}
        for followed in self._followed():
            stream = followed.stream
            if stream in grown:
                rows.setdefault(stream, []).extend(self._rows_of(followed, before[stream], ends[stream]))
        for stream_rows in rows.values():
            stream_rows.sort(key=lambda entry: (entry.tuple_id, entry.key))
        return FeedChanges(seq, pushes, before, after, rows)

    def _followed(self) -> list[Followed]:
        """The queries and templates of the owner."""
        with self._catalog.read() as tx:
            queries, templates = list_queries(tx, self._owner), list_templates(tx, self._owner)
        # Of joins, only the changes of each by itself can be followed.
        of_stream = [query for query in queries if len(query.inputs) == 1 and query.stream_ids]
        singles = [Followed(query.id, query.stream_ids[0], is_template=False) for query in of_stream]
        many = [template for template in templates if len(template.inputs) == 1 and template.stream_ids]
        return singles + [Followed(template.id, template.stream_ids[0], is_template=True) for template in many]

    def _rows_of(self, followed: Followed, since: Mark, end: int) -> Iterator[FeedRow]:
        """What joined the answers of a query or a template, up to the tuple where this batch ends."""
        position = Position(0, {followed.stream: Mark(since.next_id)})
        try:
            if followed.is_template:
                matches = self._templates.matches(followed.handle, position)
                ids = matches.new.tuple_ids(followed.stream)[matches.indexes]
                rows, numbers, labels = matches.rows, matches.numbers.tolist(), matches.labels
            else:
                new = self._invoker.new_rows(followed.handle, position)
                ids = new.tuple_ids(followed.stream)
                rows, numbers, labels = new.rows, [-1] * len(new), [None] * len(new)
        except (Unsupported, QueryFailed, UnknownQuery, UnknownStream):
            # It cannot be followed, or was unregistered since it was listed; the others go on.
            return
        for tuple_id, number, row, label in zip(ids.tolist(), numbers, rows.to_pylist(), labels, strict=True):
            key = QueryKey(followed.handle, number)
            if tuple_id < end and (tuple_id > since.next_id or key > since.after):
                yield FeedRow(tuple_id, key, row, label)


def _parse(since: str | None) -> Position | None:
    return None if since is None else Position.parse(check_text(since, "a position"))
