"""A bar for long work, on stderr and only where somebody looks at it."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from tureen.errors import WaitTimeout

if TYPE_CHECKING:
    from tureen.cli.target import AnySoup

LOOK_AGAIN = 0.5
"""How often it is told why rows are not in yet, in seconds."""


class Progress:
    """How far something is, of so much in all where that is known."""

    def __init__(self, what: str, total: float | None) -> None:
        """Say what is done; nothing is shown before it begins."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
        )
        console = Console(stderr=True)
        self._bars = Bars(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not sys.stderr.isatty()
        )
        self._task = self._bars.add_task(what, total=total, note="")

    def at(self, done: float, note: str = "") -> None:
        """So much is done."""
        self._bars.update(self._task, completed=done, note=note)

    def of(self, done: int, total: int) -> None:
        """So much of so much is done."""
        self._bars.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        """Say something beside the bar."""
        self._bars.update(self._task, note=text)

    def __enter__(self) -> Progress:
        """Begin."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no trace of the bar."""
        self._bars.stop()


def wait_until_in(soup: AnySoup, position: str, seconds: float, progress: Progress) -> None:
    """Wait until a push is in answers, and say beside the bar what it waits for."""
    deadline = time.monotonic() + seconds
    progress.note("waiting until the rows are in")
    while True:
        left = deadline - time.monotonic()
        try:
            soup.wait(position, timeout=max(0.0, min(LOOK_AGAIN, left)))
        except WaitTimeout as waiting:
            if left <= LOOK_AGAIN:
                raise
            progress.note((waiting.detail or "waiting until the rows are in").partition("\n")[0])
        else:
            return
