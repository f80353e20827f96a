"""Fast paths: shortcuts that change how long something takes, never its outcome. Each can be turned off.

`TUREEN_DISABLE=bell,turn` turns the named fast paths off, for diagnosis: a fault that persists without a fast path is
not in it (docs/operating.md). A pot works with any of them off, also beside processes that have them on. The module of
a fast path says what it speeds up, by how much, and what happens without it. Tests run with all of them off
(tests/test_fast_paths.py, tests/behaviour/).

The variable is read once. An object with a fast path asks for it when it is created; bulk statements ask once per
group.
"""

from __future__ import annotations

import os
from enum import StrEnum
from functools import cache

from tureen.errors import TureenError

VARIABLE = "TUREEN_DISABLE"
"""The environment variable with the names of the fast paths that are turned off, separated by commas."""


class FastPath(StrEnum):
    """The name of each fast path, and its module."""

    QUICK_BINDING = "quick_binding"
    """`tureen/language/fast/quick.py`, `tureen/language/bound_queries.py`"""
    GROUP_COMMIT = "group_commit"
    """`tureen/pot/group_commit.py`"""
    BULK_STATEMENTS = "bulk_statements"
    """`tureen/pot/bulk_statements.py`"""
    BELL = "bell"
    """`tureen/pot/bell.py`"""
    TURN = "turn"
    """`tureen/pot/turn.py`"""
    REUSE = "reuse"
    """`tureen/results/covers/reuse.py`"""
    HTTP_FAST_PATH = "http_fast_path"
    """`tureen/service/fast_path.py`"""
    DIRECT_EVENTS = "direct_events"
    """`tureen/service/direct_events.py`"""
    FEW_NEW_TUPLES = "few_new_tuples"
    """`tureen/results/joins/few_new_tuples.py`"""


def is_enabled(fast_path: FastPath) -> bool:
    """Whether a fast path is used in this process. Raises if `TUREEN_DISABLE` has an unknown name."""
    return fast_path not in disabled_fast_paths()


@cache
def disabled_fast_paths() -> frozenset[FastPath]:
    """The fast paths that `TUREEN_DISABLE` turns off, read at the first call."""
    return parse_names(os.environ.get(VARIABLE, ""))


def parse_names(text: str) -> frozenset[FastPath]:
    """The fast paths of a list of names.

    >>> sorted(parse_names("turn, bell"))
    [<FastPath.BELL: 'bell'>, <FastPath.TURN: 'turn'>]
    """
    names = {name.strip() for name in text.split(",")} - {""}
    unknown = sorted(names.difference(FastPath))
    if unknown:
        raise TureenError(
            f"{VARIABLE} has an unknown fast path: '{unknown[0]}'", hint=f"the fast paths are {', '.join(FastPath)}"
        )
    return frozenset(map(FastPath, names))
