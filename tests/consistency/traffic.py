"""Many threads on a pot that check their answers: no row is missing that was waited for or seen before.

Tests run a few pushes. `python -m tests.consistency.traffic --minutes 10` runs for longer on a temporary pot.
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
from tureen.soup.served_soup import ServedSoup

WRITERS, READERS, REGISTRARS = 4, 3, 2
TIMEOUT = 120.0


class Traffic:
    """Threads that push and read their own pushes, read, register and unregister, and a follower."""

    def __init__(self, soup: tureen.Soup, seed: int, should_continue: Callable[[int], bool]) -> None:
        """Create a stream; writers push while `should_continue` is true for the number of their pushes."""
        self._soup, self._seed, self._should_continue = soup, seed, should_continue
        self._name = f"traffic_{seed}"
        soup.create_stream(self._name, "writer INT, n INT")
        self._queries = [soup.register(self._select(writer)) for writer in range(WRITERS)]
        self._done = threading.Event()
        self._visible = [0] * WRITERS
        """The number of rows of each writer that are known to be visible."""
        self.pushes = 0
        self.reads = 0
        self.violations: list[str] = []

    def _select(self, writer: int) -> str:
        return f"SELECT n FROM {self._name} WHERE writer = {writer}"

    def run(self) -> None:
        """Run all threads until they end."""
        writers = [threading.Thread(target=self._guard, args=(self._write, number)) for number in range(WRITERS)]
        others = [threading.Thread(target=self._guard, args=(self._read, number)) for number in range(READERS)]
        others += [threading.Thread(target=self._guard, args=(self._register, number)) for number in range(REGISTRARS)]
        others.append(threading.Thread(target=self._guard, args=(self._follow, 0)))
        self._start = ServedSoup.of(self._soup).calls.change_reader.all(None).position()
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

    def _check(self, holds: bool, message: str) -> None:
        self.reads += 1
        if not holds:
            self.violations.append(message)

    def _write(self, random: Random, writer: int) -> None:
        pushed, pushes = 0, 0
        while self._should_continue(pushes):
            size = random.randint(1, 8)
            at = self._soup.push(self._name, [{"writer": writer, "n": pushed + row} for row in range(size)])
            pushed, pushes = pushed + size, pushes + 1
            count = len(self._queries[writer].invoke(wait_for=at, timeout=TIMEOUT))
            self._check(count == pushed, f"writer {writer}: pushed {pushed}, reads {count}")
            self._visible[writer] = pushed
        self.pushes += pushes

    def _read(self, random: Random, reader: int) -> None:
        seen = [0] * WRITERS
        while not self._done.is_set():
            writer = random.randrange(WRITERS)
            seen_rows, position = max(seen[writer], self._visible[writer]), self._soup.status()["position"]
            answer = self._queries[writer].invoke()
            self._check(len(answer) >= seen_rows, f"reader {reader}: saw {seen_rows}, reads {len(answer)}")
            self._check(answer.position >= position, f"reader {reader}: saw {position}, reads {answer.position}")
            seen[writer] = len(answer)

    def _register(self, random: Random, registrar: int) -> None:
        while not self._done.is_set():
            writer = random.randrange(WRITERS)
            query = self._soup.register(self._select(writer), materialize=random.random() < 0.5)
            seen_rows = self._visible[writer]
            for _ in range(random.randint(1, 5)):
                count = len(query.invoke())
                self._check(count >= seen_rows, f"registrar {registrar}: saw {seen_rows}, reads {count}")
                seen_rows = max(count, self._visible[writer])
            query.unregister()
            try:
                query.invoke()
                self._check(False, f"registrar {registrar}: a query answers after it was unregistered")
            except UnknownQuery:
                self._check(True, "")

    def _follow(self, _random: Random, _number: int) -> None:
        """Check that every row is a change of its writer's query once, in order."""
        delivered: Counter[str] = Counter()
        handles = {query.id: writer for writer, query in enumerate(self._queries)}
        at = self._start
        while not self._done.is_set() or any(
            delivered[query.id] < self._visible[handles[query.id]] for query in self._queries
        ):
            before = sum(delivered.values())
            for change in self._soup.feed(since=at, timeout=1.0):
                at = change.position
                if change.query in handles:
                    expected = delivered[change.query]
                    self._check(
                        change.row["n"] == expected, f"follower: got row {change.row['n']} instead of {expected}"
                    )
                    delivered[change.query] += 1
            if self._done.is_set() and sum(delivered.values()) == before:
                missing = {handles[key]: self._visible[handles[key]] - delivered[key] for key in handles}
                self._check(False, f"follower: missing rows by writer: {missing}")
                return


def main() -> int:
    """Run for some minutes and print the violations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as root, tureen.open(Path(root, "pot"), mode="write") as soup:
        soup.start(wait=TIMEOUT)
        traffic = Traffic(soup, arguments.seed, lambda _: time.monotonic() < until)
        traffic.run()
    for violation in traffic.violations:
        print(violation)
    print(f"{traffic.pushes:,} pushes, {traffic.reads:,} checks, {len(traffic.violations):,} violations")
    return 1 if traffic.violations else 0


if __name__ == "__main__":
    sys.exit(main())
