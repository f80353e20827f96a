"""Waiting for positions: until a push is in, or until what an answer reflects is here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from tureen.errors import WaitTimeout
from tureen.position import Position, PushPosition, parse_position
from tureen.pot.catalog import Catalog
from tureen.pot.status import is_reached

WAIT_SECONDS = 60.0
"""How long `wait_for` waits if nothing else is said."""

LOOK_AGAIN = 1.0

Positions = str | list[str] | tuple[str, ...] | set[str]


def wait_for(
    catalog: Catalog,
    position: Positions,
    timeout: float | None,
    *,
    help_along: Callable[[], None],
    trouble: Callable[[], str | None],
) -> None:
    """Wait until all of the positions have come.

    `help_along` feeds the pot if nobody else does; `trouble` says why nothing comes, if that is known.
    """
    positions = list(position) if isinstance(position, list | tuple | set) else [position]
    deadline = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)
    for text in positions:
        if not _comes(catalog, parse_position(text), deadline, help_along):
            raise WaitTimeout(
                "what was waited for is not in yet",
                detail=trouble(),
                hint="give a longer timeout; status() tells how far the pipeline is",
            )


class Coming(Protocol):
    """What a look at a stream found: some rows, and where to go on."""

    def __len__(self) -> int:
        """How many rows."""

    def position(self) -> str:
        """Where to go on after all of them."""


Some = TypeVar("Some", bound=Coming)


def follow(
    catalog: Catalog,
    first: Some,
    after: Callable[[str], Some],
    timeout: float | None,
    help_along: Callable[[], None],
) -> Iterator[Some]:
    """What a look found, and all that comes after it: for ever, or until nothing came for so many seconds."""
    found, last = first, time.monotonic()
    while True:
        if len(found):
            yield found
            last = time.monotonic()
        token = catalog.token()
        found = after(found.position())
        deadline = None if timeout is None else last + timeout
        if not len(found) and not _moves(catalog, token, deadline, help_along):
            return


def _moves(catalog: Catalog, token: int, deadline: float | None, help_along: Callable[[], None]) -> bool:
    """Whether something is committed before the time is up; what others commit does not give more time."""
    look_again = time.monotonic() + LOOK_AGAIN
    while catalog.token() == token or (deadline is not None and time.monotonic() > deadline):
        moment = time.monotonic()
        if deadline is not None and moment > deadline:
            return False
        if moment > look_again:
            look_again = moment + LOOK_AGAIN
            help_along()
        time.sleep(0.005)
    return True


def _comes(
    catalog: Catalog, position: Position | PushPosition, deadline: float, help_along: Callable[[], None]
) -> bool:
    token, look_again = None, 0.0
    while True:
        found = catalog.token()
        # Also where nothing happens: whoever fed the pot may have died.
        if found != token or time.monotonic() > look_again:
            token, look_again = found, time.monotonic() + LOOK_AGAIN
            with catalog.read() as tx:
                if is_reached(tx, position):
                    return True
            help_along()
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
