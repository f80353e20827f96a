"""Group commit: those who come together are made durable together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class _Slot(Generic[Item, Outcome]):
    """One caller's item, and what became of it."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.done = False


class GroupCommit(Generic[Item, Outcome]):
    """Turns concurrent calls into few commits: while one is at work, the others gather.

    `commit` gets all gathered items and returns an outcome or an error for each.
    """

    def __init__(self, commit: Callable[[list[Item]], Sequence[Outcome | Exception]]) -> None:
        """Commit groups of items by this function."""
        self._commit = commit
        self._turn = threading.Lock()
        self._gathering = threading.Lock()
        self._slots: list[_Slot[Item, Outcome]] = []

    def submit(self, item: Item) -> Outcome:
        """Commit the item, alone or with others, and return its outcome or raise its error."""
        slot: _Slot[Item, Outcome] = _Slot(item)
        with self._gathering:
            self._slots.append(slot)
        with self._turn:
            if not slot.done:
                self._run()
        if slot.error is not None:
            raise slot.error
        return slot.outcome  # type: ignore[return-value]

    def finish(self, last: Callable[[], None]) -> None:
        """Do something when no group is at work, and before the next one is."""
        with self._turn:
            last()

    def _run(self) -> None:
        with self._gathering:
            slots, self._slots = self._slots, []
        try:
            outcomes = self._commit([slot.item for slot in slots])
        except BaseException as error:
            for slot in slots:
                slot.error, slot.done = error, True
            return
        for slot, outcome in zip(slots, outcomes, strict=True):
            if isinstance(outcome, Exception):
                slot.error = outcome
            else:
                slot.outcome = outcome
            slot.done = True
