"""Streams that keep what is needed, against the same streams that keep everything.

Both engines run the same random script: pushes with late rows and punctuations, registrations and unregistrations,
merges and restarts. One of them frees whatever it can after each step. Queries must have the same answers, and derived
streams the same tuples and punctuations. A query that is registered after tuples were freed must have the answer over
the tuples from then on, and keep it.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.rules import Rules
from tureen.pipeline import arrival, upkeep
from tureen.pot.streams import find_stream
from tureen.punctuation import Punctuation
from tureen.testing.manual_engine import ManualClock, ManualEngine
from tureen.window import from_micros

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, v INT, ts TIMESTAMP"
LATENESS = 4

SELECTIONS = (
    "SELECT k, v FROM a WHERE {a} BEGIN NOW - 5 END NOW",
    "SELECT k, v FROM a WHERE v <> 2 AND {a} BEGIN NOW - 15 END NOW - 3",
    "SELECT k, v FROM b WHERE {b} BEGIN NOW - 4 ROWS END NOW",
    "SELECT k, v FROM b WHERE {b} BEGIN TIMESTAMP '2026-01-01 00:00:20' END NOW",
    "SELECT k, count(*) AS n, sum(v) AS v FROM b WHERE {b} GROUP BY k BEGIN NOW - 8 END NOW",
    "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE {a} AND {b} BEGIN NOW - 6 END NOW",
    "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND {b} WHERE {a} BEGIN NOW - 6 END NOW",
    "SELECT k, v FROM (SELECT k, v FROM a WHERE {a} BEGIN NOW - 7 END NOW) x",
    "SELECT count(*) AS n FROM b WHERE {b}",
)

DERIVED = (
    "SELECT k, v, ts FROM a WHERE v > 0",
    "SELECT k, sum(v) AS v, window_start FROM a [TUMBLE 5 SECONDS] GROUP BY k",
    "SELECT a.k, a.v, b.v AS w, a.ts FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, a.v, b.v AS w, a.ts FROM a JOIN b ON a.k = b.k BEGIN NOW - 6 END NOW",
    "SELECT x.k, x.v, y.v AS w, x.ts FROM a x JOIN a y ON x.k = y.v BEGIN NOW - 6 END NOW",
    "SELECT a.k, a.v, a.ts FROM a [RANGE 6 SECONDS] WHERE EXISTS (SELECT 1 FROM b [RANGE 4 SECONDS] WHERE b.k = a.k)",
    "SELECT a.k, a.v, a.ts FROM a WHERE k IN (SELECT k FROM b [RANGE 4 SECONDS])",
    "SELECT a.k, a.v, a.ts FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT a.k, a.v, a.ts FROM a WHERE k IN (SELECT k FROM b) AND EXISTS (SELECT 1 FROM b WHERE b.v = a.v)",
    "SELECT a.k, b.v, a.ts FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM b c WHERE c.k = a.k AND c.v = b.v)",
    "SELECT a.k, a.v, b.v AS w, a.ts FROM a [RANGE 5 SECONDS] JOIN b [RANGE 3 SECONDS] ON a.v < b.v",
    "SELECT a.k, a.v, b.v AS w, a.ts FROM a [RANGE 5 SECONDS] JOIN b ON a.k = b.k AND a.v = a.k",
    "SELECT a.k, count(*) AS n, sum(b.v) AS v FROM a JOIN b ON a.k = b.k GROUP BY a.k EMIT FINAL",
    "SELECT b.k, a.v, count(*) AS n FROM a [RANGE 6 SECONDS] JOIN b [RANGE 3 SECONDS] ON a.k = b.k"
    " GROUP BY b.k, a.v EMIT FINAL",
    "SELECT b.v, count(*) AS n FROM a [RANGE 4 SECONDS] JOIN b [RANGE 4 SECONDS] ON a.k = b.k"
    " WHERE a.v > 0 GROUP BY b.v EMIT FINAL",
    "SELECT k, count(*) AS n, sum(v) AS v FROM b GROUP BY k EMIT FINAL",
    "SELECT k, count(*) AS n, window_start FROM b [TUMBLE 5 SECONDS] GROUP BY k EMIT FINAL",
)


class Standing(NamedTuple):
    """A query in both pots, and whether nothing of its streams was freed when it was registered."""

    freeing: str
    keeping: str
    is_complete: bool


class Twins:
    """The two pots."""

    def __init__(self, root: Path, lateness: bool, derived: list[int]) -> None:
        self._root = root
        self._clock = ManualClock(START + timedelta(days=1))
        self.freeing, self.keeping = self._open("freeing"), self._open("keeping")
        self._derived = [f"d{number}" for number in derived]
        self.standing: list[Standing] = []
        self.freed = 0
        rules = Rules((), LATENESS * 1_000_000, None) if lateness else Rules((), None, None)
        for soup, retain in ((self.freeing, "needed"), (self.keeping, None)):
            for name in ("a", "b"):
                soup.create_stream(name, SCHEMA, time="ts", clock="stream", retain=retain, rules=rules)
            for number in derived:
                soup.derive_stream(f"d{number}", DERIVED[number])

    def _open(self, name: str) -> ManualEngine:
        return ManualEngine(self._root / name, self._clock)

    def restart(self) -> None:
        """Close the pot that frees, and open it again."""
        self.freeing.close()
        self.freeing = self._open("freeing")

    def push(self, name: str, rows: list[Any]) -> None:
        """Push to both pots, and take everything into runs."""
        for soup in (self.freeing, self.keeping):
            soup.append(name, rows)
            soup.take(name)
            soup.derive()
            for derived in self._derived:
                soup.take(derived)

    def register(self, sql: str) -> None:
        """Register a query in both; in the one that keeps, over what the other still has."""
        freed = {}
        with self.freeing.catalog.read() as tx:
            for name in ("a", "b"):
                before = find_stream(tx, name).freed_before
                freed[name] = (
                    "true" if before is None else f"ts >= TIMESTAMP '{from_micros(before):%Y-%m-%d %H:%M:%S.%f}'"
                )
        shown = {
            name: text if "JOIN" not in sql else text.replace("ts >=", f"{name}.ts >=") for name, text in freed.items()
        }
        is_complete = all(freed[name] == "true" for name in ("a", "b") if "{" + name + "}" in sql)
        plain = sql.format(a="true", b="true")
        self.standing.append(
            Standing(self.freeing.register(plain), self.keeping.register(sql.format(**shown)), is_complete)
        )

    def unregister(self) -> None:
        """Unregister the oldest query."""
        if self.standing:
            entry = self.standing.pop(0)
            self.freeing.unregister(entry.freeing)
            self.keeping.unregister(entry.keeping)

    def upkeep(self) -> None:
        """Merge runs and keep joins."""
        for soup in (self.freeing, self.keeping):
            soup.seal()
            soup.keep_joins()

    def free(self) -> None:
        """Free what is not needed."""
        self.freeing.deriver.note_progress()
        self.freed += self.freeing.free()

    def check(self) -> None:
        """Compare the pots."""
        for entry in self.standing:
            answer, expected = self.freeing.invoke(entry.freeing), self.keeping.invoke(entry.keeping)
            assert answer.table.to_pylist() == expected.table.to_pylist()
            assert answer.complete or not entry.is_complete
        for name in self._derived:
            sql = f"SELECT * FROM {name}"
            answer, expected = (soup.invoker.answer_once(sql) for soup in (self.freeing, self.keeping))
            assert answer.table.to_pylist() == expected.table.to_pylist(), name
            with self.freeing.catalog.read() as tx, self.keeping.catalog.read() as other:
                counts = [find_stream(each, name).punctuation_count for each in (tx, other)]
            assert counts[0] == counts[1], name

    def close(self) -> None:
        """Close both."""
        self.freeing.close()
        self.keeping.close()


STEPS = {"push": 60, "close": 12, "register": 12, "unregister": 6, "upkeep": 6, "restart": 4}
"""The steps of a script, each with its weight."""


def random_script(random: Random) -> list[tuple[Any, ...]]:
    """Steps of which most are pushes, in about the order of time."""
    script: list[tuple[Any, ...]] = []
    for kind in random.choices(list(STEPS), list(STEPS.values()), k=random.randrange(12, 24)):
        name = random.choice("ab")
        match kind:
            case "push":
                rows = [
                    (random.choice((None, *range(6))), random.randrange(4), random.choice((0, 0, 0, 1, 3, 5)))
                    for _ in range(random.randrange(1, 5))
                ]
                script.append((kind, name, random.randrange(8), rows))
            case "close":
                script.append((kind, name, random.choice("kkkv"), random.randrange(6)))
            case "register":
                script.append((kind, random.randrange(len(SELECTIONS))))
            case _:
                script.append((kind,))
    return script


def run_script(root: Path, lateness: bool, derived: list[int], script: list[tuple[Any, ...]]) -> int:
    """Run a script in both pots; the number of freed runs."""
    twins, second = Twins(root, lateness, derived), 0
    for step in script:
        match step:
            case ("push", name, ahead, rows):
                second += ahead
                times = [START + timedelta(seconds=second - late) for _, _, late in rows]
                twins.push(name, [{"k": k, "v": v, "ts": time} for (k, v, _), time in zip(rows, times, strict=True)])
            case ("close", name, column, value):
                twins.push(name, [Punctuation.of({column: value})])
            case ("register", number):
                twins.register(SELECTIONS[number])
            case ("unregister",):
                twins.unregister()
            case ("upkeep",):
                twins.upkeep()
            case ("restart",):
                twins.restart()
        twins.free()
        twins.check()
    twins.close()
    return twins.freed


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "TAIL_ROWS", 4)
    monkeypatch.setattr(upkeep, "FAN", 3)


@given(seed=st.integers(0, 1 << 32))
@example_settings(3, explored=6)
def test_freed_tuples_were_never_needed(seed: int) -> None:
    random = Random(seed)
    derived = random.sample(range(len(DERIVED)), random.randrange(3))
    root = Path(tempfile.mkdtemp(prefix="needed-"))
    try:
        run_script(root, random.random() < 0.7, derived, random_script(random))
    finally:
        shutil.rmtree(root)
