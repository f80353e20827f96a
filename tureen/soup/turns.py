"""Which changes of groups a follower gets: all or only *turns*, groups that join or leave; at once or if they last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tureen.arguments import check_text
from tureen.errors import TureenError
from tureen.language import parse_duration
from tureen.position import Position
from tureen.results.groups.group_changes import ChangedRow, GroupChanges

On = Literal["change", "turn"]


@dataclass(frozen=True)
class ChangeChoice:
    """Which changes of groups are read."""

    only_turns: bool = False
    hold: int | None = None
    """The microseconds for which a turn must have lasted."""

    @property
    def is_default(self) -> bool:
        """Whether all changes are read, at once."""
        return not self.only_turns


def change_choice(on: str | None, hold: str | None) -> ChangeChoice:
    """The choice that arguments of `changes` mean."""
    if on not in (None, "change", "turn"):
        raise TureenError(f"on must be 'change' or 'turn', got '{str(on)[:40]}'")
    if hold is None:
        return ChangeChoice(on == "turn")
    if on != "turn":
        raise TureenError("hold needs on='turn'", hint="a turn is reported after it has lasted for that time")
    return ChangeChoice(only_turns=True, hold=parse_duration(check_text(hold, "hold")))


@dataclass(slots=True)
class PendingTurn:
    """A turn that was not reported yet."""

    change: ChangedRow
    turned_at: int
    since: Position
    """The last position before its turn."""


@dataclass
class HeldTurns:
    """Reports the turns of groups that have lasted; for one follower."""

    hold: int
    _pending: dict[tuple[int, int], PendingTurn] = field(default_factory=dict)
    _read: Position | None = None
    """How far the changes were read."""
    _reported: Position | None = None
    """The position that was returned last."""

    def position_to_read(self, since: Position | None) -> Position | None:
        """Where to read on, for a follower that continues from a position."""
        if since is not None and since == self._reported:
            return self._read
        self._pending.clear()
        return since

    def lasting(self, changes: GroupChanges) -> GroupChanges:
        """The turns that have lasted up to the end of changes, which are read one after the other."""
        now = changes.end.now
        assert now is not None
        self._read = changes.position()
        if any(change.kind == "reset" for change in changes.changed):
            self._pending.clear()
            self._reported = self._read
            return changes
        for change in changes.changed:
            self._note(change, now, changes.since)
        lasting = [key for key, turn in self._pending.items() if now - turn.turned_at >= self.hold]
        reported = [self._pending.pop(key) for key in lasting]
        # A turn that is pending is read again by a follower that resumes, so its position is before all of them. One
        # that stops between the turns that are reported now is also before the rest of these.
        turns = self._pending.values()
        self._reported = min((turn.since for turn in turns), key=str, default=self._read)
        place, places = self._reported, []
        for turn in reversed(reported):
            places.append(place)
            place = min(place, turn.since, key=str)
        rows = [turn.change for turn in reported]
        return GroupChanges(rows, self._reported, self._reported, self._due(now, changes.due), places[::-1])

    def _note(self, change: ChangedRow, now: int, since: Position) -> None:
        key = (change.hash, change.member)
        pending = self._pending.get(key)
        if pending is not None:
            # It turned back before it was reported.
            del self._pending[key]
        else:
            self._pending[key] = PendingTurn(change, now, since)

    def _due(self, now: int, due: float | None) -> float | None:
        ends = [(turn.turned_at + self.hold - now) / 1_000_000 for turn in self._pending.values()]
        return min([*ends, *([] if due is None else [due])], default=None)
