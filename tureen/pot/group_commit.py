"""Group commit: those who come together are made durable together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from tureen.errors import StorageFailed

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

LOOK_AGAIN = 0.05
"""Seconds after which one who waits looks by itself: being woken is quicker, and not needed, as whoever should wake it
may have been interrupted at any place."""


class _Slot(Generic[Item, Outcome]):
    """One caller's item, and what became of it."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Outcome | None = None
        self.error: BaseException | None = StorageFailed("the commit was interrupted", hint="look whether it is there")
        self.done = False
        # Held while nobody has woken the caller; lighter than an event.
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def sleep(self) -> None:
        """Wait a little, or until somebody wakes the caller."""
        self._asleep.acquire(timeout=LOOK_AGAIN)

    def wake(self) -> None:
        """End the caller's sleep, or its next one."""
        with suppress(RuntimeError):
            self._asleep.release()


class GroupCommit(Generic[Item, Outcome]):
    """Turns concurrent calls into few commits: while one is at work, the others gather.

    `commit` gets all gathered items and returns an outcome or an error for each. One of the callers commits for all,
    and wakes them and the first of those who came meanwhile: nobody is woken to wait again.
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
        while not slot.done:
            if self._turn.locked():
                slot.sleep()
                continue
            with self._turn:
                if not slot.done:
                    self._run()
                    # It was among those, unless whoever had taken it was interrupted.
                    slot.done = True
            self._wake(self._slots[:1])
        if slot.error is not None:
            raise slot.error
        return slot.outcome  # type: ignore[return-value]

    def finish(self, last: Callable[[], None]) -> None:
        """Do something when no group is at work, and before the next one is."""
        with self._turn:
            last()

    def _run(self) -> None:
        """Commit everything that has gathered."""
        slots: list[_Slot[Item, Outcome]] = []
        try:
            with self._gathering:
                slots, self._slots = self._slots, []
            outcomes = self._commit([slot.item for slot in slots])
            for slot, outcome in zip(slots, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    slot.error = outcome
                else:
                    slot.outcome, slot.error = outcome, None
        except Exception as error:
            for slot in slots:
                slot.error = error
        finally:
            for slot in slots:
                slot.done = True
            self._wake(slots)

    def _wake(self, slots: list[_Slot[Item, Outcome]]) -> None:
        for slot in slots:
            slot.wake()
