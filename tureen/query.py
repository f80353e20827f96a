"""A standing query, bound to its stream: what the language gives and everything else takes."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.predicate import Clause
from tureen.window import Window


@dataclass(frozen=True, slots=True)
class Output:
    """One item of the select list: a column under the name that the answer gives it."""

    name: str
    column: str


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT outputs FROM stream WHERE clause, over a window."""

    sql: str
    stream: str
    clause: Clause
    outputs: tuple[Output, ...]
    window: Window
