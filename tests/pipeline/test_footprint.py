"""The footprint of a pot under steady pushes: maps and files of live runs only."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tureen.pipeline import arrival, upkeep
from tureen.pipeline.verifying import verify_pot
from tureen.pot import backup
from tureen.pot import runs as runs_module
from tureen.pot import sweep as sweep_module
from tureen.pot.runs import Run, live_runs
from tureen.pot.streams import find_stream
from tureen.pot.sweep import sweep
from tureen.results.snapshot.segment import Segment
from tureen.testing.manual_engine import ManualEngine

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = "BEGIN NOW - 100 YEARS END NOW + 100 YEARS"


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now = int(START.timestamp()) * 1_000_000

    def __call__(self) -> int:
        """The moment, in microseconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Advance by a number of seconds."""
        self.now += int(seconds * 1_000_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of arrivals, expiry and the removal of replaced files."""
    clock = Clock()
    for module in (runs_module, sweep_module):
        monkeypatch.setattr(module, "micros_now", clock)
    return clock


@pytest.fixture
def soup(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualEngine]:
    """A pot in which eight rows are indexed, with two streams with a retention of a minute."""
    monkeypatch.setattr(arrival, "TAIL_ROWS", 8)
    monkeypatch.setattr(upkeep, "LONG_TAIL", 32)
    opened = ManualEngine(tmp_path / "pot", clock)
    for name in ("s", "other"):
        opened.create_stream(name, "a INT, ts TIMESTAMP", time="ts", retain="1 minute")
    yield opened
    opened.close()


def rows(clock: Clock, *numbers: int) -> list[dict[str, Any]]:
    moment = datetime.fromtimestamp(clock.now / 1e6, UTC)
    return [{"a": number, "ts": moment + timedelta(microseconds=micros)} for micros, number in enumerate(numbers)]


def run_two_seconds(soup: ManualEngine, clock: Clock, number: int, stream: str = "s") -> None:
    """Two seconds of a server: a push, a merge if due, and expiry."""
    clock.advance(2)
    soup.push(stream, rows(clock, number, number + 1))
    soup.seal()
    soup.expire()


def values(soup: ManualEngine, handle: str) -> list[int]:
    return [row["a"] for row in soup.invoke(handle)]


def runs_of(soup: ManualEngine, stream: str = "s") -> list[Run]:
    with soup.catalog.read() as tx:
        return live_runs(tx, find_stream(tx, stream).id)


def maps_of(root: Path, process: int | str = "self") -> list[str]:
    """The files of the pot's streams that a process has mapped; the kernel marks deleted files."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return [line.partition(str(root))[2] for line in lines if f" {root}/streams/" in line]


def mapped_paths(root: Path) -> set[str]:
    return {path.removeprefix("/") for path in maps_of(root)}


def test_replaced_runs_are_unmapped_by_the_next_refresh(soup: ManualEngine, clock: Clock) -> None:
    root = soup.catalog.root
    even = soup.register(f"SELECT a FROM s WHERE a % 2 = 0 {ALL}")
    count = soup.register(f"SELECT count(*) AS n FROM s {ALL}")
    lazy = soup.register(f"SELECT a FROM s WHERE a % 3 = 0 {ALL}", materialize=False)
    soup.compile()
    for number in range(0, 240, 2):
        run_two_seconds(soup, clock, number)
        if number % 60 == 0:
            soup.register(f"SELECT a FROM s WHERE a < {number} {ALL}")
            soup.compile()
            soup.pay()
        for handle in (even, count, lazy):
            soup.invoke(handle)
        sweep(soup.catalog, grace=-1)
        soup.invoker.view.refresh()
        live = {path for run in runs_of(soup) for path in (run.path, *(cells.path for cells in run.cells))}
        if not mapped_paths(root) <= live:
            # Some objects refer to each other, and an earlier test of this process may have made collections rare.
            gc.collect()
        assert mapped_paths(root) <= live, "a replaced run is still mapped"
    retained = range(240 - 2 * len(values(soup, even)), 240)
    assert values(soup, even) == [number for number in retained if number % 2 == 0]
    assert values(soup, lazy) == [number for number in retained if number % 3 == 0]
    assert len(runs_of(soup)) < 64


def test_replaced_runs_of_unused_streams_are_unmapped(soup: ManualEngine, clock: Clock) -> None:
    query, other = soup.register(f"SELECT a FROM s {ALL}"), soup.register(f"SELECT a FROM other {ALL}")
    for number in range(0, 40, 2):
        soup.push("s", rows(clock, number, number + 1))
        soup.push("other", rows(clock, number, number + 1))
    assert len(values(soup, query)) == len(values(soup, other)) == 40
    soup.seal(everything=True)
    sweep(soup.catalog, grace=-1)
    assert len(values(soup, query)) == 40
    assert not [path for path in maps_of(soup.catalog.root) if path.endswith("(deleted)")]


def test_steady_pushes_leave_few_files(soup: ManualEngine, clock: Clock) -> None:
    query = soup.register(f"SELECT a FROM s WHERE a % 2 = 0 {ALL}")
    soup.compile()
    most = 0
    for number in range(0, 800, 2):
        run_two_seconds(soup, clock, number)
        if number % 20 == 0:
            sweep(soup.catalog)
            most = max(most, sum(path.is_file() for path in soup.catalog.root.rglob("*")))
    assert most < 80
    answer = values(soup, query)
    assert answer == list(range(800 - 2 * len(answer), 800, 2))
    assert len(answer) >= 30, "a minute is retained"


def test_a_reader_answers_during_continuous_merges(
    soup: ManualEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = soup.register(f"SELECT a FROM s WHERE a >= 0 {ALL}", materialize=False)
    for number in range(0, 64, 8):
        soup.push("s", rows(clock, *range(number, number + 8)))
    expected = list(range(64))
    reader = ManualEngine(soup.catalog.root, clock)
    hits = Segment.hits

    def overtaken(segment: Segment, *arguments: Any) -> Any:
        # Replace and remove every file that the reader is about to open.
        if len(runs_of(soup)) > 1:
            soup.seal(everything=True)
        soup.push("s", rows(clock, len(expected)))
        expected.append(len(expected))
        soup.seal(everything=True)
        sweep(soup.catalog, grace=-1)
        return hits(segment, *arguments)

    monkeypatch.setattr(Segment, "hits", overtaken)
    answer = sorted(row["a"] for row in reader.invoke(query))
    assert answer == expected[: len(answer)]
    assert len(answer) >= 64
    reader.close()


_READER = """
import sys
from pathlib import Path
from tureen.testing.manual_engine import ManualEngine

soup, query = ManualEngine(Path(sys.argv[1])), sys.argv[2]
soup.invoker.view.refresh()
print(len(soup.invoker.view.stream(1).segments), flush=True)
for line in sys.stdin:
    print(sorted(row["a"] for row in soup.invoke(query)), flush=True)
"""


def test_another_process_with_an_older_view_answers_correctly(soup: ManualEngine, clock: Clock) -> None:
    query = soup.register(f"SELECT a FROM s WHERE a >= 0 {ALL}")
    for number in range(0, 32, 8):
        soup.push("s", rows(clock, *range(number, number + 8)))
    command = [sys.executable, "-c", _READER, str(soup.catalog.root), query]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert int(reader.stdout.readline()) == 4
        held = 32
        for _ in range(5):
            soup.seal(everything=True)
            sweep(soup.catalog, grace=-1)
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert reader.stdout.readline() == f"{list(range(held))}\n"
            deleted = [
                line for line in Path(f"/proc/{reader.pid}/maps").read_text().splitlines() if "(deleted)" in line
            ]
            assert not [line for line in deleted if str(soup.catalog.root) in line]
            soup.push("s", rows(clock, *range(held, held + 8)))
            held += 8
        reader.stdin.close()
        assert reader.wait() == 0


def test_a_backup_does_not_restart_for_each_replaced_file(
    soup: ManualEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    soup.push("s", rows(clock, 1, 2))
    for number in range(25):
        soup.push("other", rows(clock, number))
    copy, replaced = backup._copy, 0

    def overtaken(source: Path, target: Path) -> None:
        nonlocal replaced
        if replaced < 25 and "streams" in source.parts:
            replaced += 1
            soup.push("s", rows(clock, replaced))
            with soup.catalog.read() as tx:
                stream = find_stream(tx, "s")
            upkeep.seal(soup.catalog, stream, everything=True)
            sweep(soup.catalog, grace=-1)
        copy(source, target)

    monkeypatch.setattr(backup, "_copy", overtaken)
    backup.backup_pot(soup.catalog, tmp_path / "copy", lambda *_: None)
    assert replaced == 25
    restored = ManualEngine(tmp_path / "copy", clock)
    assert len(restored.invoker.answer_once(f"SELECT a FROM s {ALL}").table) == 27
    assert len(restored.invoker.answer_once(f"SELECT a FROM other {ALL}").table) == 25
    restored.close()


def test_files_replaced_during_verification_are_not_damage(soup: ManualEngine, clock: Clock) -> None:
    for number in range(3):
        soup.push("s", rows(clock, number))

    def overtake(done: int, _: int) -> None:
        if done == 0:
            soup.seal(everything=True)
            sweep(soup.catalog, grace=-1)

    assert verify_pot(soup.catalog, overtake).damaged == ()
    next((soup.catalog.root / "streams").rglob("*.run")).unlink()
    assert len(verify_pot(soup.catalog, lambda *_: None).damaged) == 1
