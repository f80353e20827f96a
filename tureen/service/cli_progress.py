"""A bar for long work, on stderr and only where somebody looks at it."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars


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
