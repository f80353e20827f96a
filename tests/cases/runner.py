"""Runs case files in pots: every query in six roles, answered from published, owed and lazy cells and from the tail.

A query is registered before the data, between the batches and after them, each time eager and lazy. Queries with equal
conditions share their cells, so an eager query would hide errors of the others: a file runs in four pots, in each of
which a query has another role, next to queries in the other roles; a file with several relations in two.

Queries are invoked when all data have arrived, while some cells are published, some are owed and the last tuples are
an unindexed tail. After all debts are paid and all runs are merged, some are invoked once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases.casefile import Case, CaseFile, CaseRelation, Expected, Failure
from tests.cases.tables import Table
from tureen.errors import TureenError
from tureen.pipeline import arrival, upkeep
from tureen.pot.registered import Registration
from tureen.pot.registering import change_together
from tureen.soup.tables import Dimensions
from tureen.testing.manual_engine import ManualEngine

TAIL_ROWS = 4
"""Runs with fewer rows stay in the tail, so that a few tuples suffice for both."""

_SMALL = ((arrival, "TAIL_ROWS", TAIL_ROWS), (upkeep, "LONG_TAIL", 2 * TAIL_ROWS), (upkeep, "FAN", 2))
_ROLES: tuple[tuple[str, ...], ...] = (
    ("eager, before",),
    ("eager, between",),
    ("eager, after",),
    ("lazy, before", "lazy, between", "lazy, after"),
)
_JOIN_ROLES: tuple[tuple[str, ...], ...] = (
    ("eager, before",),
    ("lazy, before",),
    ("eager, between",),
    ("lazy, before",),
)
"""The roles in files with several relations; `tests/oracle/test_joins.py` runs random joins in many more orders."""

_JOIN_TURNS = 2
"""In two turns every query is eager once and lazy once."""

WITH_PATHS = ("expressions", "joins", "where", "windows")
"""The files whose paths are counted; explaining the queries of all files would take seconds."""

_INVOKED_AGAIN = ("eager, between", "lazy, before")

Outcomes = dict[str, Expected]
"""The outcomes of a case, by role and time of invocation."""

Bound = Registration | Failure
"""A query that can be registered, or why it cannot."""


class FileRun:
    """The outcomes of all cases of a file."""

    def __init__(self, file: CaseFile, root: Path) -> None:
        """Run the file in new pots in a directory."""
        self.outcomes: dict[str, Outcomes] = {case.name: {} for case in file.cases}
        self.paths: Counter[str] = Counter()
        """The tuples of the answers by their path: published, owed, lazy or tail; for files of `WITH_PATHS`;
        and the answers from kept joins."""
        with pytest.MonkeyPatch.context() as patch:
            for module, name, value in _SMALL:
                patch.setattr(module, name, value)
            choices, turns = (_JOIN_ROLES, _JOIN_TURNS) if file.joins else (_ROLES, len(_ROLES))
            bound: dict[str, Bound] = {}
            has_tables = any(relation.is_table for relation in file.relations)
            for turn in range(turns):
                roles = {case.name: choices[(number + turn) % len(choices)] for number, case in enumerate(file.cases)}
                pot = _Pot(file, root / str(turn), roles, {} if has_tables else bound)
                try:
                    pot.run()
                finally:
                    pot.engine.close()
                self.paths.update(pot.paths)
                for name, outcomes in pot.outcomes.items():
                    self.outcomes[name].update(outcomes)


class _Pot:
    """One pot, and the role that each case has in it."""

    def __init__(self, file: CaseFile, root: Path, roles: dict[str, tuple[str, ...]], bound: dict[str, Bound]) -> None:
        self.file, self.roles, self.bound = file, roles, bound
        self.engine = ManualEngine(root, clock=lambda: file.clock)
        self.tables = Dimensions(self.engine.catalog)
        self.outcomes: dict[str, Outcomes] = {case.name: {} for case in file.cases}
        self.paths: Counter[str] = Counter()
        self.handles: list[tuple[Case, str, str]] = []

    def run(self) -> None:
        engine = self.engine
        for relation in self.file.relations:
            self._create(relation)
        self._register("before")
        engine.compile()
        for number in range(max(len(relation.batches) for relation in self.file.relations)):
            self._arrive(number)
            self._invoke_role("eager, before")
            if number == 0:
                self._register("between")
            elif number == 1:
                engine.seal()
                engine.compile()
                engine.keep_joins()
        self._register("after")
        engine.expire()
        self._invoke("at once")
        engine.compile()
        engine.pay()
        engine.keep_joins()
        engine.seal(everything=True)
        self._invoke("settled", *(() if self.file.joins else _INVOKED_AGAIN))

    def _create(self, relation: CaseRelation) -> None:
        if relation.is_table:
            self.tables.create(relation.name, relation.schema.sql, [])
            return
        clock, retain = relation.settings.get("clock", "wall"), relation.settings.get("retain")
        self.engine.create_stream(
            relation.name, relation.schema.sql, relation.schema.time, clock, retain, relation.rules
        )

    def _arrive(self, number: int) -> None:
        """Push the batch of that number of each stream, and replace the tables that have a content of that number."""
        for relation in self.file.relations:
            if number >= len(relation.batches):
                continue
            if relation.is_table:
                self.tables.replace(relation.name, relation.batches[number])
            elif relation.punctuated:
                self.engine.append(relation.name, relation.punctuated[number])
                # Every second batch stays pending until the next one.
                if number % 2 == 0:
                    self.engine.take(relation.name)
            else:
                # Every second batch is pushed in two parts: one may be large enough for an index, the other not.
                self.engine.push(relation.name, relation.batches[number], parts=1 + number % 2)

    def _invoke_role(self, role: str) -> None:
        """Invoke the queries of a role while data arrive: results cached for one answer must serve the next."""
        for case, its_role, handle in self.handles:
            if its_role == role:
                self._answer(handle, case.now)

    def _register(self, when: str) -> None:
        """Register the queries of the roles of that time, in one commit."""
        requests: list[tuple[Case, str, Registration]] = []
        for case, role in self._in_role(when):
            bound = self._bind(case)
            if isinstance(bound, Failure):
                self.outcomes[case.name][role] = bound
            else:
                requests.append((case, role, replace(bound, eager=role.startswith("eager"))))
        handles = change_together(self.engine.catalog, [request for _, _, request in requests])
        for (case, role, _), handle in zip(requests, handles, strict=True):
            if isinstance(handle, Exception):
                self.outcomes[case.name][role] = failure_of(handle)
            else:
                self.handles.append((case, role, handle))

    def _bind(self, case: Case) -> Bound:
        """Bind a query, once for all pots of the file: their streams have the same numbers, but tables do not."""
        if case.sql not in self.bound:
            try:
                self.bound[case.sql] = self.engine.bind(case.sql)
            except Exception as error:
                self.bound[case.sql] = failure_of(error)
        return self.bound[case.sql]

    def _in_role(self, when: str) -> Iterator[tuple[Case, str]]:
        for case in self.file.cases:
            for role in self.roles[case.name]:
                if role.endswith(when):
                    yield case, role

    def _invoke(self, when: str, *only: str) -> None:
        for case, role, handle in self.handles:
            if not only or role in only:
                self.outcomes[case.name][f"{role}, {when}"] = self._answer(handle, case.now)
        if when == "at once" and self.file.name in WITH_PATHS:
            self._explain(when)

    def _explain(self, when: str) -> None:
        for case, role, handle in self.handles:
            # Queries without a condition need no cells, and stopped queries have none.
            if "WHERE" in case.sql and not isinstance(self.outcomes[case.name][f"{role}, {when}"], Failure):
                self._count_paths(self.engine.invoker.explain(handle))

    def _count_paths(self, plan: dict[str, Any]) -> None:
        for entry in plan.get("inputs", [plan]):
            self.paths.update(entry.get("tuples_by_path", {}))
        if "kept_join" in plan:
            self.paths["kept join"] += plan["kept_join"]["used"]

    def _answer(self, handle: str, now: int | None) -> Expected:
        try:
            return Table.of(self.engine.invoke(handle, now).table)
        except Exception as error:
            return failure_of(error, handle)


def failure_of(error: Exception, handle: str = "") -> Failure:
    """An error as a case expects it; an unexpected exception with its own class."""
    if not isinstance(error, TureenError):
        return Failure(type(error).__name__, None, " ".join(str(error).split()))
    location = f"{error.location.line}:{error.location.column}" if error.location else None
    if not handle:
        return Failure(type(error).__name__, location, error.message, error.hint)
    # The cause counts, whether the query fails now or was stopped before.
    lines = [error.message, *(line for line in (error.detail or "").splitlines() if not line.startswith("hint: "))]
    if error.message.endswith("was stopped"):
        del lines[0]
    return Failure(type(error).__name__, location, lines[0], because=" ".join(" ".join(lines[1:]).split()) or None)


def cases_of(files: list[CaseFile]) -> list[tuple[CaseFile, Case]]:
    """Every case with its file."""
    return [(file, case) for file in files for case in file.cases]
