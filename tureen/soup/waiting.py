"""Wait for positions, and for new changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from tureen.errors import WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.pot_progress import Moment, PotProgress
from tureen.soup.interface import Positions

WAIT_SECONDS = 60.0
"""The default timeout of `wait_for` in seconds."""

CHECK_SECONDS = 1.0
"""The interval at which waiting calls check that the pot has an engine."""

POLL_SECONDS = 0.002
"""The interval at which waiting calls look for pushes and commits."""


def wait_for(
    progress: PotProgress,
    position: Positions,
    timeout: float | None,
    *,
    ensure_fed: Callable[[], None],
    delay_reason: Callable[[], str | None],
) -> None:
    """Block until all positions are reached.

    `ensure_fed` starts an engine if no process has one; `delay_reason` is the detail of the error after a timeout.
    """
    positions = list(position) if isinstance(position, list | tuple | set) else [position]
    deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)
    for text in positions:
        if not _wait_until_reached(progress, parse_position(text), deadline, ensure_fed):
            raise WaitTimeout(
                "the position was not reached within the timeout",
                detail=delay_reason(),
                hint="pass a longer timeout; status() returns the current position and lag",
            )


class Resumable(Protocol):
    """Rows, and the position after them."""

    def __len__(self) -> int:
        """The number of rows."""

    def position(self) -> str:
        """The position after all of them."""

    @property
    def due(self) -> float | None:
        """After how many seconds time alone may add rows; None if it does not."""


Batch = TypeVar("Batch", bound=Resumable)


def follow(
    progress: PotProgress,
    first: Batch,
    read: Callable[[str], Batch],
    timeout: float | None,
    ensure_fed: Callable[[], None],
) -> Iterator[Batch]:
    """A first batch and all batches after it; ends after `timeout` seconds without a row, without a timeout never."""
    batch, last = first, time.monotonic()
    before: Moment | None = None
    read_at = last
    while True:
        if len(batch):
            yield batch
            last = time.monotonic()
        if len(batch) and batch.due and before is not None:
            # Time changes the rows again and again. Without a push, they are not read before that is due.
            _wait_for_news(progress, before, None, read_at + batch.due, ensure_fed)
        before, read_at = progress.now(), time.monotonic()
        batch = read(batch.position())
        deadline = None if timeout is None else last + timeout
        due = None if batch.due is None else read_at + batch.due
        if not len(batch) and not _wait_for_news(progress, before, deadline, due, ensure_fed):
            return


def _wait_for_news(
    progress: PotProgress, before: Moment, deadline: float | None, due: float | None, ensure_fed: Callable[[], None]
) -> bool:
    """Whether there is a push or a commit before the deadline, or it is `due`; unrelated ones do not extend it."""
    next_check = time.monotonic() + CHECK_SECONDS
    while progress.now() == before or (deadline is not None and time.monotonic() > deadline):
        moment = time.monotonic()
        if deadline is not None and moment > deadline:
            return False
        if due is not None and moment >= due:
            return True
        if moment > next_check:
            next_check = moment + CHECK_SECONDS
            ensure_fed()
        time.sleep(POLL_SECONDS)
    return True


def _wait_until_reached(
    progress: PotProgress, position: Position | PushPosition, deadline: float, ensure_fed: Callable[[], None]
) -> bool:
    last, next_check, is_stored = None, 0.0, False
    while True:
        now = progress.now()
        # Also without news: the process with the engine may have died.
        if not is_stored and (now != last or time.monotonic() > next_check):
            last, next_check = now, time.monotonic() + CHECK_SECONDS
            is_stored = progress.is_reached(position)
            if not is_stored:
                ensure_fed()
        if is_stored and progress.is_derived(position):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
