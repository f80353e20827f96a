"""Errors printed to stderr, with a caret below their position in the SQL text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tureen.errors import ServiceError, TureenError


class SqlTextError(Exception):
    """An error together with the SQL text that it is about."""

    def __init__(self, error: TureenError, sql: str) -> None:
        """Keep the error and the text."""
        super().__init__(str(error))
        self.error, self.sql = error, sql


@contextmanager
def pointing_into(sql: str) -> Iterator[None]:
    """Attach a SQL text to errors raised inside the block."""
    try:
        yield
    except ServiceError:
        # A failed request, not an error in the text.
        raise
    except TureenError as error:
        raise SqlTextError(error, sql) from error


@contextmanager
def reported() -> Iterator[None]:
    """Print errors raised inside the block to stderr, and exit with code 1."""
    try:
        yield
    except SqlTextError as error:
        print_error(error.error, error.sql)
        raise typer.Exit(1) from None
    except TureenError as error:
        print_error(error)
        raise typer.Exit(1) from None
    except BrokenPipeError:
        # The reader of our output has exited, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def print_error(error: TureenError, sql: str | None = None) -> None:
    """Print an error to stderr, in colour if that is a terminal."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    for line in error_lines(error, sql):
        kind, rest, text = line.partition(": ")
        if colour and kind in _COLOURS and rest:
            line = f"\x1b[{_COLOURS[kind]}m{kind}:\x1b[0m {text}"
        print(line, file=sys.stderr)


_COLOURS = {"error": "1;31", "hint": "1;36"}


def error_lines(error: TureenError, sql: str | None = None) -> list[str]:
    r"""Format an error, with the line of the SQL text that it is about and a caret below its position.

    >>> from tureen.errors import Location, UnknownColumn
    >>> error = UnknownColumn("stream 't' has no column 'prize'", hint="did you mean 'price'?", location=Location(2, 8))
    >>> print("\n".join(error_lines(error, "SELECT\n  sym, prize FROM t")))
    error: stream 't' has no column 'prize'
      line 2:   sym, prize FROM t
                     ^
    hint: did you mean 'price'?
    """
    lines = [f"error: {error.message}"]
    position = error.location
    sql_lines = (sql or "").split("\n")
    if position is not None and sql is not None and 1 <= position.line <= len(sql_lines):
        label = f"  line {position.line}: " if len(sql_lines) > 1 else "  "
        excerpt, indent = _excerpt(sql_lines[position.line - 1], position.column)
        lines += [label + excerpt, " " * (len(label) + indent) + "^"]
    elif position is not None:
        lines[0] += f" (line {position.line}, column {position.column})"
    if error.detail:
        lines += error.detail.splitlines()
    return [*lines, f"hint: {error.hint}"] if error.hint else lines


_WIDTH = 100


def _excerpt(line: str, column: int) -> tuple[str, int]:
    """A line, or the part of a long line around a column, and the number of characters before the column."""
    text = line.replace("\t", " ").rstrip("\r")
    offset = min(max(column - 1, 0), len(text))
    if len(text) <= _WIDTH:
        return text, offset
    start = max(0, min(offset - _WIDTH // 2, len(text) - _WIDTH))
    head, tail = "…" if start else "", "…" if start + _WIDTH < len(text) else ""
    return head + text[start : start + _WIDTH] + tail, offset - start + len(head)
