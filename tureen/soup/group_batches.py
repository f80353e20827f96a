"""Changes of groups as followers get them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tureen.errors import Unsupported
from tureen.handle import member_handle
from tureen.position import Position
from tureen.results.answer import Change
from tureen.results.groups.group_changes import GroupChanges
from tureen.soup.turns import ChangeChoice, HeldTurns
from tureen.xml_template import Part

ReadGroups = Callable[[Position | None, bool], GroupChanges]
"""Reads the changes since a position; or only the turns, see `turns.py`."""


@dataclass(frozen=True)
class GroupBatch:
    """The changes of groups of a query, or of the queries of a template."""

    handle: str
    changes: GroupChanges
    template: Part | None = None
    """What renders the rows of a query in WXQuery as XML."""

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.changes)

    def position(self) -> str:
        """The position after all of them."""
        return str(self.changes.position())

    @property
    def due(self) -> float | None:
        """After how many seconds time alone may change the answers."""
        return self.changes.due

    def __iter__(self) -> Iterator[Change]:
        """The changes, in the order of their hashes."""
        for change, position in zip(self.changes.changed, self.changes.positions(), strict=True):
            is_member = change.member >= 0
            query = member_handle(self.handle, change.member) if is_member else self.handle
            yield Change(query, change.row, position, change.label, change.kind, change.before, template=self.template)


class GroupReader:
    """Reads the changes of groups that a follower chose; with turns that must last, it serves a single follower."""

    def __init__(self, choice: ChangeChoice) -> None:
        """Read changes of that choice."""
        self._choice = choice
        self._held = None if choice.hold is None else HeldTurns(choice.hold)

    def check_default(self) -> None:
        """Raise if something else was chosen than all changes."""
        if not self._choice.is_default:
            raise Unsupported(
                "on='turn' is for queries with groups", hint="every change of another query is a row that joins"
            )

    def read(self, since: Position | None, read: ReadGroups) -> GroupChanges:
        """The chosen changes since a position."""
        if self._held is not None:
            return self._held.lasting(read(self._held.position_to_read(since), True))
        return read(since, self._choice.only_turns)


ALL_CHANGES = GroupReader(ChangeChoice())
"""Reads all changes; it has no state."""
