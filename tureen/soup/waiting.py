"""Wait for positions, and for commits with new changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from tureen.errors import WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.status import is_reached
from tureen.soup.interface import Positions

WAIT_SECONDS = 60.0
"""The default timeout of `wait_for` in seconds."""

CHECK_SECONDS = 1.0
"""The interval at which waiting calls check that the pot has an engine."""


def wait_for(
    catalog: Catalog,
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
        if not _wait_until_reached(catalog, parse_position(text), deadline, ensure_fed):
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


Batch = TypeVar("Batch", bound=Resumable)


def follow(
    catalog: Catalog,
    first: Batch,
    read: Callable[[str], Batch],
    timeout: float | None,
    ensure_fed: Callable[[], None],
) -> Iterator[Batch]:
    """A first batch and all batches after it; ends after `timeout` seconds without a row, without a timeout never."""
    batch, last = first, time.monotonic()
    while True:
        if len(batch):
            yield batch
            last = time.monotonic()
        token = catalog.token()
        batch = read(batch.position())
        deadline = None if timeout is None else last + timeout
        if not len(batch) and not _wait_for_commit(catalog, token, deadline, ensure_fed):
            return


def _wait_for_commit(catalog: Catalog, token: int, deadline: float | None, ensure_fed: Callable[[], None]) -> bool:
    """Whether there is a commit before the deadline; unrelated commits do not extend it."""
    next_check = time.monotonic() + CHECK_SECONDS
    while catalog.token() == token or (deadline is not None and time.monotonic() > deadline):
        moment = time.monotonic()
        if deadline is not None and moment > deadline:
            return False
        if moment > next_check:
            next_check = moment + CHECK_SECONDS
            ensure_fed()
        time.sleep(0.005)
    return True


def _wait_until_reached(
    catalog: Catalog, position: Position | PushPosition, deadline: float, ensure_fed: Callable[[], None]
) -> bool:
    last_token, next_check = None, 0.0
    while True:
        token = catalog.token()
        # Also without commits: the process with the engine may have died.
        if token != last_token or time.monotonic() > next_check:
            last_token, next_check = token, time.monotonic() + CHECK_SECONDS
            with catalog.read() as tx:
                if is_reached(tx, position):
                    return True
            ensure_fed()
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
