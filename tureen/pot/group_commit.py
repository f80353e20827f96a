"""Group commit: concurrent calls share one commit.

A commit takes nearly as long for one item as for many, because most of it is an fsync. 32 threads register and
unregister 2,500 queries a second in groups, and 370 one by one. Without group commit (`tureen/fast_paths.py`), each
call commits its item alone, one call after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from tureen.errors import StorageFailed
from tureen.fast_paths import FastPath, is_enabled

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

WAKE_TIMEOUT = 0.05
"""Seconds after which a waiting caller checks by itself: the thread that should wake it may have been interrupted."""


class _Slot(Generic[Item, Outcome]):
    """A caller's item, and its outcome."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Outcome | None = None
        self.error: BaseException | None = StorageFailed("the commit was interrupted", hint="check whether it is there")
        self.done = False
        # Held until the caller is woken; lighter than an event.
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def sleep(self) -> None:
        """Wait until the caller is woken, or for `WAKE_TIMEOUT`."""
        self._asleep.acquire(timeout=WAKE_TIMEOUT)

    def wake(self) -> None:
        """End the caller's sleep, or its next one."""
        with suppress(RuntimeError):
            self._asleep.release()


class GroupCommit(Generic[Item, Outcome]):
    """Turns concurrent calls into few commits: while one group is being committed, the next one gathers.

    `commit` receives all gathered items and returns an outcome or an error for each. One of the callers commits for
    all, and wakes them and the first caller of the next group: no caller is woken only to wait again.
    """

    def __init__(self, commit: Callable[[list[Item]], Sequence[Outcome | Exception]]) -> None:
        """Commit groups of items with that function."""
        self._commit = commit
        self._enabled = is_enabled(FastPath.GROUP_COMMIT)
        self._commit_lock = threading.Lock()
        self._slots_lock = threading.Lock()
        self._slots: list[_Slot[Item, Outcome]] = []

    def submit(self, item: Item) -> Outcome:
        """Commit the item, alone or with others, and return its outcome or raise its error."""
        if not self._enabled:
            return self._submit_alone(item)
        slot: _Slot[Item, Outcome] = _Slot(item)
        with self._slots_lock:
            self._slots.append(slot)
        while not slot.done:
            if self._commit_lock.locked():
                slot.sleep()
                continue
            with self._commit_lock:
                if not slot.done:
                    self._run()
                    # It was in this group, unless the thread that had taken it was interrupted.
                    slot.done = True
            self._wake(self._slots[:1])
        if slot.error is not None:
            raise slot.error
        return slot.outcome  # type: ignore[return-value]

    def _submit_alone(self, item: Item) -> Outcome:
        with self._commit_lock:
            (outcome,) = self._commit([item])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def finish(self, last: Callable[[], None]) -> None:
        """Call `last` between two groups."""
        with self._commit_lock:
            last()

    def _run(self) -> None:
        """Commit all gathered items."""
        slots: list[_Slot[Item, Outcome]] = []
        try:
            with self._slots_lock:
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
