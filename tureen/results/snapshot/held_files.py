"""Retries of answers whose files were replaced by a commit and removed before they were mapped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tureen.pot.parts import missing_file
from tureen.results.snapshot.view import View

Result = TypeVar("Result")

RETRIES = 5
"""How often an answer is retried if a file was removed."""


def with_files(view: View, answer: Callable[[], Result]) -> Result:
    """Call `answer`, which reads from a view, and retry it if a file was removed in the meantime."""
    view.refresh()
    try:
        return answer()
    except FileNotFoundError:
        return _with_held_files(view, answer)


def _with_held_files(view: View, answer: Callable[[], Result]) -> Result:
    """Call `answer` again after a file was replaced and removed before it was mapped.

    All files are mapped first, so that a retry succeeds however long it takes.
    """
    with view.holding():
        for _ in range(RETRIES):
            view.forget()
            with suppress(FileNotFoundError):
                return answer()
        view.forget()
        try:
            return answer()
        except FileNotFoundError as error:
            raise missing_file(error) from error
