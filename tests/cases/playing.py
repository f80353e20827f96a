"""Case files, played into pots: every query six times over, and answered from every kind of place.

A query is registered before the data, between the batches and after them, each time eager and lazy. Queries of equal
conditions share their cells, so an eager one would hide what becomes of the others: a file is played into four pots,
and in each of them a query has another role, beside other queries in the other roles.

Answers are taken when the data are in, while some cells are published, some are owed and the last tuples are an
unindexed tail. When all debts are paid and all runs are merged, some are asked once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.casefile import Case, CaseFile, Expected, Failure
from tests.cases.tables import Table
from tureen.errors import TureenError
from tureen.pipeline import arrival, upkeep
from tureen.testing.manual_engine import ManualEngine

TAIL_ROWS = 4
"""Runs of fewer rows are left as a tail, so that a handful of tuples has both."""

_SMALL = ((arrival, "TAIL_ROWS", TAIL_ROWS), (upkeep, "LONG_TAIL", 2 * TAIL_ROWS), (upkeep, "FAN", 2))
_ROLES: tuple[tuple[str, ...], ...] = (
    ("eager, before",),
    ("eager, between",),
    ("eager, after",),
    ("lazy, before", "lazy, between", "lazy, after"),
)
_ASKED_AGAIN = ("eager, between", "lazy, before")

Outcomes = dict[str, Expected]
"""What a case came to, by who was asked and when."""


class Played:
    """What became of every case of a file."""

    def __init__(self, file: CaseFile, root: Path) -> None:
        """Play the file into new pots in that directory."""
        self.outcomes: dict[str, Outcomes] = {case.name: {} for case in file.cases}
        self.paths: Counter[str] = Counter()
        """From where the answers came, in tuples: published, owed, lazy or the tail."""
        with pytest.MonkeyPatch.context() as patch:
            for module, name, value in _SMALL:
                patch.setattr(module, name, value)
            for turn in range(len(_ROLES)):
                roles = {case.name: _ROLES[(number + turn) % len(_ROLES)] for number, case in enumerate(file.cases)}
                pot = _Pot(file, root / str(turn), roles)
                try:
                    pot.play()
                finally:
                    pot.engine.close()
                self.paths.update(pot.paths)
                for name, outcomes in pot.outcomes.items():
                    self.outcomes[name].update(outcomes)


class _Pot:
    """One pot, and the role that each case has in it."""

    def __init__(self, file: CaseFile, root: Path, roles: dict[str, tuple[str, ...]]) -> None:
        self.file, self.roles = file, roles
        self.engine = ManualEngine(root, clock=lambda: file.clock)
        self.outcomes: dict[str, Outcomes] = {case.name: {} for case in file.cases}
        self.paths: Counter[str] = Counter()
        self.handles: list[tuple[Case, str, str]] = []

    def play(self) -> None:
        engine, settings = self.engine, self.file.settings
        clock, retain = settings.get("clock", "wall"), settings.get("retain")
        engine.create_stream(self.file.stream, self.file.schema.sql, self.file.schema.time, clock, retain)
        self._register("before")
        engine.compile()
        for number, rows in enumerate(self.file.batches):
            # The batches after the first come in two parts: one may be large enough for an index, and one not.
            engine.push(self.file.stream, rows, parts=1 + number % 2)
            self._look("eager, before")
            if number == 0:
                self._register("between")
            elif number == 1:
                engine.seal()
                engine.compile()
        self._register("after")
        engine.expire()
        self._invoke("at once")
        engine.compile()
        engine.pay()
        engine.seal(everything=True)
        self._invoke("settled", *_ASKED_AGAIN)

    def _look(self, who: str) -> None:
        """Ask some while the data come in: what is kept from one answer must serve the next."""
        for case, its_role, handle in self.handles:
            if its_role == who:
                self._answer(handle, case.now)

    def _register(self, when: str) -> None:
        for case, who in self._in_role(when):
            try:
                handle = self.engine.register(case.sql, materialize=who.startswith("eager"))
            except Exception as error:
                self.outcomes[case.name][who] = failure_of(error)
            else:
                self.handles.append((case, who, handle))

    def _in_role(self, when: str) -> Iterator[tuple[Case, str]]:
        for case in self.file.cases:
            for who in self.roles[case.name]:
                if who.endswith(when):
                    yield case, who

    def _invoke(self, when: str, *only: str) -> None:
        for case, who, handle in self.handles:
            if not only or who in only:
                self.outcomes[case.name][f"{who}, {when}"] = self._answer(handle, case.now)
        for case, _, handle in self.handles:
            # What has no condition needs no cells, and what was stopped has none.
            if "WHERE" in case.sql and not isinstance(case.expected, Failure):
                self.paths.update(self.engine.invoker.explain(handle)["tuples_by_path"])

    def _answer(self, handle: str, now: int | None) -> Expected:
        try:
            return Table.of(self.engine.invoke(handle, now).table)
        except Exception as error:
            return failure_of(error, handle)


def failure_of(error: Exception, handle: str = "") -> Failure:
    """An error as a case expects it; one that is not ours shows as what it is."""
    if not isinstance(error, TureenError):
        return Failure(type(error).__name__, None, " ".join(str(error).split()))
    place = f"{error.place.line}:{error.place.column}" if error.place else None
    if not handle:
        return Failure(type(error).__name__, place, error.message, error.hint)
    # Whether it fails now or was stopped before: what counts is what happened.
    said = [error.message, *(error.detail or "").splitlines()]
    if error.message.endswith("was stopped"):
        del said[0]
    return Failure(type(error).__name__, place, said[0], because=" ".join(" ".join(said[1:]).split()) or None)


def cases_of(files: list[CaseFile]) -> list[tuple[CaseFile, Case]]:
    """Every case with its file."""
    return [(file, case) for file in files for case in file.cases]
