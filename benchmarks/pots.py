"""Pots with standing queries and no tuples: registered once, copied for every use.

Registering tens of thousands of queries one by one takes minutes, and several measurements begin with the same ones.
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
WAYS: dict[str, Any] = {"materialised": True, "lazy": False, "auto": "auto"}
"""What `register` is told, by what it is called here."""


@dataclass(frozen=True)
class Standing:
    """The queries of a pot: their conditions, and the handles that they got."""

    wanted: Sequence[str]
    handles: Sequence[str]


class QueryPots:
    """Makes pots with so many standing queries, the first ones of `conditions`, each of them once."""

    def __init__(self, folder: Path, report: Report) -> None:
        """Keep the pots in a folder, and report how long registering takes."""
        self._folder, self._report = folder, report
        self._made: dict[tuple[str, int], Standing] = {}

    def copy(self, way: str, count: int, to: Path) -> Standing:
        """Make a pot with so many queries."""
        if (way, count) not in self._made:
            self._made[way, count] = self._make(way, count)
        shutil.copytree(self._path(way, count), to)
        return self._made[way, count]

    def forget(self) -> None:
        """Remove what is kept."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._made.clear()

    def _make(self, way: str, count: int) -> Standing:
        path, wanted = self._path(way, count), conditions(count)
        fewer = max((less for known, less in self._made if known == way and less < count), default=None)
        handles: list[str] = []
        if fewer is not None:
            shutil.copytree(self._path(way, fewer), path)
            handles += self._made[way, fewer].handles
        with tureen.open(path, mode="write") as soup:
            soup.start(wait=120)
            if fewer is None:
                soup.create_stream(STREAM, SCHEMA, time="ts")
            began = time.perf_counter()
            added = register_all(soup, STREAM, wanted[len(handles) :], materialize=WAYS[way])
            taken = time.perf_counter() - began
            soup.settle()
        if count:
            what = f"register {len(added):,} single queries, {way}"
            self._report.add(f"{what}, {len(handles):,} standing", taken, "s")
        return Standing(wanted, [*handles, *(one.id for one in added)])

    def _path(self, way: str, count: int) -> Path:
        return self._folder / f"{way}-{count}"
