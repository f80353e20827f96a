"""The changes of groups in a feed: of all queries with groups, between two positions of the feed.

They come after the rows that joined other answers, query by query, and of a query in the order of their hashes. The
position of each but the last tells the query and the hash up to which they were read, and since when the others were
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tureen.errors import QueryFailed, UnknownQuery, UnknownStream, UnknownTable, Unsupported
from tureen.handle import member_handle
from tureen.position import Position, UnreadChanges
from tureen.results.answer import Change
from tureen.results.groups.group_changes import ChangedRow, GroupChanges

ReadBetween = Callable[[str, Position, Position], GroupChanges]
"""Reads the changes of a query or a template with groups between two positions of a feed."""


@dataclass(frozen=True)
class FeedGroups:
    """Changes of groups between two positions of a feed."""

    since: Position
    end: Position
    changed: Sequence[tuple[str, ChangedRow]] = ()
    """The handle of a query or template, and a change of it."""
    due: float | None = None

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.changed)

    @property
    def unread(self) -> UnreadChanges:
        """What was not read before the first of them."""
        return UnreadChanges(0, self.since.marks, self.since.now, seq=self.since.seq)

    def __iter__(self) -> Iterator[Change]:
        """The changes, each with the position of the feed after it."""
        end = str(self.end)
        for index, (handle, change) in enumerate(self.changed, 1):
            position = end
            if index < len(self.changed):
                following, after = self.changed[index]
                # Of several changes with one hash, all come again.
                is_last = following != handle or after.hash > change.hash
                number = change.hash if is_last else max(change.hash - 1, 0)
                position = f"{end}{replace(self.unread, after=number, query=handle)}"
            query = member_handle(handle, change.member) if change.member >= 0 else handle
            yield Change(query, change.row, position, change.label, change.kind, change.before)


def read_groups(handles: Sequence[str], since: Position, end: Position, read: ReadBetween) -> FeedGroups:
    """The changes of the groups of some queries and templates between two positions of a feed."""
    changed: list[tuple[str, ChangedRow]] = []
    dues: list[float] = []
    for handle in sorted(handles):
        try:
            changes = read(handle, since, end)
        except (Unsupported, QueryFailed, UnknownQuery, UnknownStream, UnknownTable):
            # It cannot be followed, or was unregistered since it was listed; the others go on.
            continue
        changed += [(handle, change) for change in changes.changed]
        dues += [] if changes.due is None else [changes.due]
    return FeedGroups(since, end, changed, min(dues, default=None))


def since_of(unread: UnreadChanges) -> Position:
    """The position since which groups were not read."""
    return Position(unread.seq, unread.marks, 0, unread.now)


def read_rest(handles: Sequence[str], position: Position, read: ReadBetween) -> FeedGroups:
    """The rest of changes that were read in part, up to the position where these end."""
    unread = position.unread
    assert unread is not None
    since, end = since_of(unread), replace(position, unread=None)
    rest = read_groups([handle for handle in handles if handle >= unread.query], since, end, read)
    # After a reset, all rows of the query follow.
    is_reset = any(handle == unread.query and change.kind == "reset" for handle, change in rest.changed)
    changed = [
        (handle, change)
        for handle, change in rest.changed
        if handle > unread.query or is_reset or change.hash > unread.after
    ]
    return replace(rest, changed=changed, due=0.0)
