"""Errors as a terminal shows them: on stderr, pointing into the SQL text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tureen.errors import ServiceError, TureenError


class Told(Exception):
    """An error that belongs to a SQL text."""

    def __init__(self, error: TureenError, sql: str) -> None:
        """Keep both."""
        super().__init__(str(error))
        self.error, self.sql = error, sql


@contextmanager
def pointing_into(sql: str) -> Iterator[None]:
    """What goes wrong inside is shown with its location in that text."""
    try:
        yield
    except ServiceError:
        # It is not about the text.
        raise
    except TureenError as error:
        raise Told(error, sql) from error


@contextmanager
def reported() -> Iterator[None]:
    """What goes wrong inside is written to stderr, and the program ends with 1."""
    try:
        yield
    except Told as told:
        tell(told.error, told.sql)
        raise typer.Exit(1) from None
    except TureenError as error:
        tell(error)
        raise typer.Exit(1) from None
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def tell(error: TureenError, sql: str | None = None) -> None:
    """Write an error to stderr, in colour where it is a terminal."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    for line in error_lines(error, sql):
        kind, rest, text = line.partition(": ")
        if colour and kind in _COLOURS and rest:
            line = f"\x1b[{_COLOURS[kind]}m{kind}:\x1b[0m {text}"
        print(line, file=sys.stderr)


_COLOURS = {"error": "1;31", "hint": "1;36"}


def error_lines(error: TureenError, sql: str | None = None) -> list[str]:
    r"""An error as lines, with the line of the SQL text that it is about and a caret below its location.

    >>> from tureen.errors import Location, UnknownColumn
    >>> error = UnknownColumn("stream 't' has no column 'prize'", hint="did you mean 'price'?", location=Location(2, 8))
    >>> print("\n".join(error_lines(error, "SELECT\n  sym, prize FROM t")))
    error: stream 't' has no column 'prize'
      line 2:   sym, prize FROM t
                     ^
    hint: did you mean 'price'?
    """
    lines = [f"error: {error.message}"]
    location = error.location
    written = (sql or "").split("\n")
    if location is not None and sql is not None and 1 <= location.line <= len(written):
        label = f"  line {location.line}: " if len(written) > 1 else "  "
        shown, before = _shown(written[location.line - 1], location.column)
        lines += [label + shown, " " * (len(label) + before) + "^"]
    elif location is not None:
        lines[0] += f" (line {location.line}, column {location.column})"
    if error.detail:
        lines += error.detail.splitlines()
    return [*lines, f"hint: {error.hint}"] if error.hint else lines


_WIDTH = 100


def _shown(line: str, column: int) -> tuple[str, int]:
    """What is shown of a line, and how many characters are before the place; of a long one the part around it."""
    text = line.replace("\t", " ").rstrip("\r")
    before = min(max(column - 1, 0), len(text))
    if len(text) <= _WIDTH:
        return text, before
    start = max(0, min(before - _WIDTH // 2, len(text) - _WIDTH))
    head, tail = "…" if start else "", "…" if start + _WIDTH < len(text) else ""
    return head + text[start : start + _WIDTH] + tail, before - start + len(head)
