"""Group commit: those who come together are made durable together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tureen.errors import StorageFailed

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class _Slot(Generic[Item, Outcome]):
    """One caller's item, and what became of it."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Outcome | None = None
        self.error: BaseException | None = StorageFailed("the commit was interrupted", hint="try again")
        self.leads = False
        """Whether it is this caller who commits."""
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def sleep(self) -> None:
        """Wait until the item is committed, or until it is this caller's turn to commit."""
        self._asleep.acquire()

    def wake(self) -> None:
        """End the caller's sleep, or its next one."""
        self._asleep.release()


class GroupCommit(Generic[Item, Outcome]):
    """Turns concurrent calls into few commits: while one is at work, the others gather.

    `commit` gets all gathered items and returns an outcome or an error for each. One of the callers commits for all,
    and wakes them and the first of those who came meanwhile, who is next: nobody is woken to wait again.
    """

    def __init__(self, commit: Callable[[list[Item]], Sequence[Outcome | Exception]]) -> None:
        """Commit groups of items by this function."""
        self._commit = commit
        self._turn = threading.Lock()
        self._gathering = threading.Lock()
        self._slots: list[_Slot[Item, Outcome]] = []
        self._busy = False

    def submit(self, item: Item) -> Outcome:
        """Commit the item, alone or with others, and return its outcome or raise its error."""
        slot: _Slot[Item, Outcome] = _Slot(item)
        with self._gathering:
            self._slots.append(slot)
            slot.leads, self._busy = not self._busy, True
        try:
            if not slot.leads:
                slot.sleep()
            if slot.leads:
                self._lead(slot)
        except BaseException:
            # Interrupted: nobody waits for it any more, and others must not wait for this caller.
            self._leave(slot)
            raise
        if slot.error is not None:
            raise slot.error
        return slot.outcome  # type: ignore[return-value]

    def finish(self, last: Callable[[], None]) -> None:
        """Do something when no group is at work, and before the next one is."""
        with self._turn:
            last()

    def _lead(self, own: _Slot[Item, Outcome]) -> None:
        """Commit everything that has gathered, and let the next one do the same."""
        slots: list[_Slot[Item, Outcome]] = []
        try:
            with self._turn:
                with self._gathering:
                    slots, self._slots = self._slots, []
                self._run(slots)
        finally:
            own.leads = False
            self._pass_on()
            for slot in slots:
                if slot is not own:
                    slot.wake()

    def _pass_on(self) -> None:
        """Let the first of those who gathered lead."""
        with self._gathering:
            self._busy = bool(self._slots)
            for slot in self._slots[:1]:
                slot.leads = True
                slot.wake()

    def _leave(self, slot: _Slot[Item, Outcome]) -> None:
        with self._gathering:
            if slot in self._slots:
                self._slots.remove(slot)
        if slot.leads:
            self._pass_on()

    def _run(self, slots: list[_Slot[Item, Outcome]]) -> None:
        try:
            outcomes = self._commit([slot.item for slot in slots])
        except BaseException as error:
            for slot in slots:
                slot.error = error
            return
        for slot, outcome in zip(slots, outcomes, strict=True):
            if isinstance(outcome, Exception):
                slot.error = outcome
            else:
                slot.outcome, slot.error = outcome, None
