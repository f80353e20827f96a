"""Pots with standing queries and no tuples: created once, copied for every use.

Registering tens of thousands of queries one by one takes minutes, and several measurements start with the same ones.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tureen
from benchmarks.report import Report
from benchmarks.workload import SCHEMA, conditions, register_all

STREAM = "r"
MATERIALIZE: dict[str, Any] = {"materialised": True, "lazy": False, "auto": "auto"}
"""The `materialize` argument of `register`, by the name of the mode."""


@dataclass(frozen=True)
class RegisteredQueries:
    """The queries of a pot: their conditions and their handles."""

    wheres: Sequence[str]
    handles: Sequence[str]


class QueryPots:
    """Creates pots with the first N queries of `conditions`, and caches them."""

    def __init__(self, folder: Path, report: Report) -> None:
        """Store the pots in a folder, and report how long registering takes."""
        self._folder, self._report = folder, report
        self._registered: dict[tuple[str, int], RegisteredQueries] = {}

    def copy(self, mode: str, count: int, to: Path) -> RegisteredQueries:
        """Create a pot with `count` queries."""
        if (mode, count) not in self._registered:
            self._registered[mode, count] = self._make(mode, count)
        shutil.copytree(self._path(mode, count), to)
        return self._registered[mode, count]

    def forget(self) -> None:
        """Remove the cached pots."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._registered.clear()

    def _make(self, mode: str, count: int) -> RegisteredQueries:
        path, wheres = self._path(mode, count), conditions(count)
        fewer = max(
            (other_count for other_mode, other_count in self._registered if other_mode == mode and other_count < count),
            default=None,
        )
        handles: list[str] = []
        if fewer is not None:
            shutil.copytree(self._path(mode, fewer), path)
            handles += self._registered[mode, fewer].handles
        with tureen.open(path, mode="write") as soup:
            soup.start(wait=120)
            if fewer is None:
                soup.create_stream(STREAM, SCHEMA, time="ts")
            began = time.perf_counter()
            added = register_all(soup, STREAM, wheres[len(handles) :], materialize=MATERIALIZE[mode])
            elapsed = time.perf_counter() - began
            soup.settle()
        if count:
            label = f"register {len(added):,} single queries, {mode}"
            self._report.add(f"{label}, {len(handles):,} standing", elapsed, "s")
        return RegisteredQueries(wheres, [*handles, *(query.id for query in added)])

    def _path(self, mode: str, count: int) -> Path:
        return self._folder / f"{mode}-{count}"
