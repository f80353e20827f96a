"""Many threads on one pot that check what they are answered: nothing that was waited for or seen before is missing.

`run` is used by the tests for a few pushes. `python -m tests.engine.traffic --minutes 10` runs it on a pot of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import tureen
from tureen.errors import UnknownQuery

WRITERS, READERS, REGISTRARS = 4, 3, 2
PATIENCE = 120.0


class Traffic:
    """Threads that push and read their own pushes, that read, that register and unregister, and one that follows."""

    def __init__(self, soup: tureen.Soup, seed: int, go_on: Callable[[int], bool]) -> None:
        """Create a stream; a writer makes another push while `go_on` says so of the number that it made."""
        self._soup, self._seed, self._go_on = soup, seed, go_on
        self._name = f"traffic_{seed}"
        soup.create_stream(self._name, "writer INT, n INT")
        self._own = [soup.register(self._select(writer)) for writer in range(WRITERS)]
        self._done = threading.Event()
        self._in = [0] * WRITERS
        """How many rows of each writer are known to be in: somebody was answered so."""
        self.pushes = 0
        self.reads = 0
        self.violations: list[str] = []

    def _select(self, writer: int) -> str:
        return f"SELECT n FROM {self._name} WHERE writer = {writer}"

    def run(self) -> None:
        """Start all threads, and return when they have ended."""
        writers = [threading.Thread(target=self._guard, args=(self._write, number)) for number in range(WRITERS)]
        others = [threading.Thread(target=self._guard, args=(self._read, number)) for number in range(READERS)]
        others += [threading.Thread(target=self._guard, args=(self._register, number)) for number in range(REGISTRARS)]
        others.append(threading.Thread(target=self._guard, args=(self._follow, 0)))
        self._start = self._soup.looks.all(None).position()
        for thread in writers + others:
            thread.start()
        for thread in writers:
            thread.join()
        self._done.set()
        for thread in others:
            thread.join()

    def _guard(self, work: Callable[[Random, int], None], number: int) -> None:
        try:
            work(Random(f"{self._seed} {work.__name__} {number}"), number)
        except Exception as error:
            self.violations.append(f"{work.__name__} {number}: {error!r}")

    def _check(self, holds: bool, what: str) -> None:
        self.reads += 1
        if not holds:
            self.violations.append(what)

    def _write(self, random: Random, writer: int) -> None:
        pushed, pushes = 0, 0
        while self._go_on(pushes):
            size = random.randint(1, 8)
            at = self._soup.push(self._name, [{"writer": writer, "n": pushed + row} for row in range(size)])
            pushed, pushes = pushed + size, pushes + 1
            count = len(self._own[writer].invoke(wait_for=at, timeout=PATIENCE))
            self._check(count == pushed, f"writer {writer}: pushed {pushed}, reads {count}")
            self._in[writer] = pushed
        self.pushes += pushes

    def _read(self, random: Random, reader: int) -> None:
        seen = [0] * WRITERS
        while not self._done.is_set():
            writer = random.randrange(WRITERS)
            known, position = max(seen[writer], self._in[writer]), self._soup.status()["position"]
            answer = self._own[writer].invoke()
            self._check(len(answer) >= known, f"reader {reader}: saw {known}, reads {len(answer)}")
            self._check(answer.position >= position, f"reader {reader}: saw {position}, reads {answer.position}")
            seen[writer] = len(answer)

    def _register(self, random: Random, registrar: int) -> None:
        while not self._done.is_set():
            writer = random.randrange(WRITERS)
            query = self._soup.register(self._select(writer), materialize=random.random() < 0.5)
            known = self._in[writer]
            for _ in range(random.randint(1, 5)):
                count = len(query.invoke())
                self._check(count >= known, f"registrar {registrar}: saw {known}, reads {count}")
                known = max(count, self._in[writer])
            query.unregister()
            try:
                query.invoke()
                self._check(False, f"registrar {registrar}: a query answers after it was unregistered")
            except UnknownQuery:
                self._check(True, "")

    def _follow(self, _random: Random, _number: int) -> None:
        """Every row joins the answer of its writer's query once, in order."""
        told: Counter[str] = Counter()
        handles = {query.id: writer for writer, query in enumerate(self._own)}
        at = self._start
        while not self._done.is_set() or any(told[query.id] < self._in[handles[query.id]] for query in self._own):
            before = sum(told.values())
            for change in self._soup.feed(since=at, timeout=1.0):
                at = change.position
                if change.query in handles:
                    expected = told[change.query]
                    self._check(
                        change.row["n"] == expected, f"follower: row {change.row['n']} comes instead of {expected}"
                    )
                    told[change.query] += 1
            if self._done.is_set() and sum(told.values()) == before:
                missing = {handles[key]: self._in[handles[key]] - told[key] for key in handles}
                self._check(False, f"follower: rows that never came, by writer: {missing}")
                return


def main() -> int:
    """Run for some minutes and print what was violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as root, tureen.open(Path(root, "pot"), mode="write") as soup:
        soup.start(wait=PATIENCE)
        traffic = Traffic(soup, arguments.seed, lambda _: time.monotonic() < until)
        traffic.run()
    for violation in traffic.violations:
        print(violation)
    print(f"{traffic.pushes:,} pushes, {traffic.reads:,} checks, {len(traffic.violations):,} violations")
    return 1 if traffic.violations else 0


if __name__ == "__main__":
    sys.exit(main())
