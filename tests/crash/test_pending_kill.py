"""SIGKILL at every point from a push to the commit of its rows, and at upkeep: answers, and followers that resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash import pending_pot, workload
from tests.crash.pending_pot import BEFORE, QUERIES, VALUES, Follower, Handles, Reader, followers, rows, run_step
from tests.crash.processes import run_until_killed
from tureen.testing import Oracle, comparable
from tureen.testing.manual_engine import ManualEngine

COMMIT = ("before_commit", "in_commit", "after_commit")

KILLS = {
    ("append",): ("push.before_write", "push.before_sync", "push.after_sync", "push.in_publish", "push.after_publish"),
    ("compile", "take"): (
        *("sink.task", "run.before_write", "run.after_write", "commit.before_word"),
        *(f"sink.{point}" for point in COMMIT),
    ),
    ("sink",): ("sink.task", "run.after_write", "commit.before_word", *(f"sink.{point}" for point in COMMIT)),
    ("seal",): ("seal.before_write", "commit.before_word", *(f"seal.{point}" for point in COMMIT)),
    ("compile",): ("compile.before_commit",),
    ("compile", "pay"): ("debt.before_write", "debt.after_write", "debt.before_commit", "debt.after_commit"),
    ("take", "trim"): ("trim.before_delete",),
    ("take", "seal", "sweep"): ("sweep.before_delete",),
}
"""The steps after `BEFORE`, and the points at which the last of them is killed."""

CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "all": lambda _: True,
    "lazy": lambda row: row["k"] == 1 and row["n"] > 3,
    "kept": lambda row: row["k"] != 2,
    "recent": lambda row: row["k"] != 2,
    "last": lambda row: row["k"] == 0,
}
"""The conditions of the queries that can be followed."""

AFTER = ("take one", "append", "sink", "take", "seal", "compile", "pay", "trim", "sweep")
"""The steps after a kill."""


@dataclass
class Journal:
    """What a killed process has acknowledged and seen."""

    arrived: list[int] = field(default_factory=list)
    """The numbers of the steps whose rows were added to `s`."""
    others: list[int] = field(default_factory=list)
    unacknowledged: int | None = None
    """The step that was killed, if it added rows."""
    followers: dict[str, Follower] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read the lines of a process."""
        journal = cls(followers={follower.kind: follower for follower in followers()})
        for line in path.read_text().splitlines():
            ((kind, content),) = json.loads(line).items()
            if kind == "follower":
                journal.followers[content["kind"]] = Follower(**content)
                continue
            name, number = content
            if name in ("append", "sink"):
                journal.unacknowledged = number if kind == "begun" else None
            if kind == "done" and name != "other":
                journal.arrived += [number] if name in ("append", "sink") else []
            elif kind == "done":
                journal.others.append(number)
        return journal


def has_key(k: int, row: dict[str, Any]) -> bool:
    """The condition of a query of the template."""
    return bool(row["k"] == k)


SQLS = (
    *(sql for sql, _ in QUERIES.values()),
    *(pending_pot.TEMPLATE.replace(":k", str(k)) for k in VALUES),
    pending_pot.ONE_OFF,
)


@cache
def oracle_answers(arrived: tuple[int, ...]) -> list[list[dict[str, Any]]]:
    """The answers of all queries over the rows of those steps."""
    oracle = Oracle()
    oracle.create_stream("s", pending_pot.SCHEMA, "ts", clock="stream")
    for number in arrived:
        oracle.push("s", rows(number))
    return [oracle.register(sql).invoke() for sql in SQLS]


class Expectation:
    """What answers and followers must be: after a kill, with the unacknowledged rows or without all of them."""

    def __init__(self, handles: Handles, journal: Journal) -> None:
        self.handles, self.journal = handles, journal
        self.arrived = list(journal.arrived)

    def check(self, reader: Reader, following: list[Follower]) -> None:
        """Compare all answers, and what followers have seen after they have read the rest."""
        numbers = {row["n"] for row in reader.invoker.invoke(self.handles.queries["all"])}
        unacknowledged = self.journal.unacknowledged
        if unacknowledged is not None and numbers & {row["n"] for row in rows(unacknowledged)}:
            # Once they are there they stay.
            self.arrived.append(unacknowledged)
            self.journal.unacknowledged = None
        self._check_answers(reader)
        for follower in following:
            follower.read(reader)
            for name, expected in self._changes(follower.kind).items():
                assert [change for change in follower.seen if change[1] == name] == expected, follower.kind

    def _check_answers(self, reader: Reader) -> None:
        handles = [*(self.handles.queries[name] for name in QUERIES), *self.handles.members]
        answers = [reader.invoker.invoke(handle) for handle in handles]
        answers.append(reader.invoker.answer_once(pending_pot.ONE_OFF))
        for sql, answer, expected in zip(SQLS, answers, oracle_answers(tuple(self.arrived)), strict=True):
            assert comparable(list(answer)) == comparable(expected), sql

    def _changes(self, kind: str) -> dict[str, list[list[Any]]]:
        """All changes of a query, a template or a feed, by the column that tells their stream."""
        queries = self.handles.queries
        joined = {queries[name]: condition for name, condition in CONDITIONS.items() if kind in (name, "feed")}
        if kind in ("template", "feed"):
            for handle, k in zip(self.handles.members, VALUES, strict=True):
                joined[handle] = partial(has_key, k)
        arrived = [row for number in self.arrived for row in rows(number)]
        changes = {
            "n": [[handle, "n", row["n"]] for row in arrived for handle in sorted(joined) if joined[handle](row)]
        }
        if kind == "feed":
            changes["m"] = [[queries["other"], "m", number] for number in self.journal.others]
        return changes


@pytest.mark.parametrize(
    ("steps", "point"), [(steps, point) for steps, points in KILLS.items() for point in points], ids=str
)
def test_answers_and_followers_after_a_kill(
    tmp_path: Path, crash_dir: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[str, ...], point: str
) -> None:
    for module, name, value in workload.LIMITS:
        monkeypatch.setattr(module, name, value)
    root, journal_file = tmp_path / "pot", tmp_path / "journal"
    handles = pending_pot.create_pot(root)
    # A reader of another process, which is not killed.
    survivor, its_followers = pending_pot.other_process(root, handles), followers()
    Expectation(handles, Journal()).check(survivor, its_followers)
    run_until_killed(pending_pot.work_until_killed, root, handles, (*BEFORE, *steps), point, journal_file)
    assert not (crash_dir / point).exists()
    journal = Journal.read(journal_file)
    expectation = Expectation(handles, journal)
    resumed = list(journal.followers.values())
    expectation.check(survivor, its_followers)
    fresh = pending_pot.other_process(root, handles)
    expectation.check(fresh, resumed)
    engine = ManualEngine(root)
    opened = Reader(engine.invoker, handles)
    expectation.check(opened, resumed)
    expectation.check(survivor, its_followers)
    for number, name in enumerate(AFTER, start=100):
        run_step(engine, name, number)
        if name in ("append", "sink"):
            expectation.arrived.append(number)
        expectation.check(opened, resumed)
        if name in ("take", "sweep"):
            expectation.check(survivor, its_followers)
    expectation.check(fresh, followers())
    for catalog in (survivor.invoker.view.catalog, fresh.invoker.view.catalog):
        catalog.close()
    engine.close()
