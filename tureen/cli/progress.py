"""Progress bars on stderr, shown only if that is a terminal."""

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

POLL_SECONDS = 0.5
"""The number of seconds between two updates of what a wait is waiting for."""

_WAITING = "waiting for the position"


class Progress:
    """A progress bar."""

    def __init__(self, description: str, total: float | None) -> None:
        """Describe the work and its total, if that is known; the bar appears when the block begins."""
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
        self._task = self._bars.add_task(description, total=total, note="")

    def at(self, done: float, note: str = "") -> None:
        """Set the completed amount."""
        self._bars.update(self._task, completed=done, note=note)

    def of(self, done: int, total: int) -> None:
        """Set the completed amount and the total."""
        self._bars.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        """Show a text beside the bar."""
        self._bars.update(self._task, note=text)

    def __enter__(self) -> Progress:
        """Show the bar."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bar."""
        self._bars.stop()


def wait_for_position(soup: AnySoup, position: str, seconds: float, progress: Progress) -> None:
    """Wait until answers reflect a position, and show beside the bar what the wait is for."""
    deadline = time.monotonic() + seconds
    progress.note(_WAITING)
    while True:
        remaining = deadline - time.monotonic()
        try:
            soup.wait(position, timeout=max(0.0, min(POLL_SECONDS, remaining)))
        except WaitTimeout as timeout:
            if remaining <= POLL_SECONDS:
                raise
            progress.note((timeout.detail or _WAITING).partition("\n")[0])
        else:
            return
