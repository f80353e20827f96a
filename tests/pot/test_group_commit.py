"""Group commit: each caller gets its own outcome, with few commits, and no caller waits forever."""

from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fast_path_switch import without_fast_paths
from tureen.errors import StorageFailed
from tureen.fast_paths import FastPath
from tureen.pot.group_commit import GroupCommit
from tureen.pot.turn import Turn


class Commits:
    """Commits that can be paused; odd items are rejected, and -2 fails the commit."""

    def __init__(self) -> None:
        """Start paused."""
        self.groups: list[list[int]] = []
        self.go = threading.Event()
        self.begun = threading.Event()

    def __call__(self, items: list[int]) -> list[int | Exception]:
        """Commit."""
        self.begun.set()
        assert self.go.wait(30)
        self.groups.append(items)
        if -2 in items:
            raise OSError("the disk")
        return [ValueError(str(item)) if item % 2 else item * 10 for item in items]


def gather(group: GroupCommit[int, int], count: int) -> None:
    """Wait until `count` callers wait for the next commit."""
    while len(group._slots) < count:
        threading.Event().wait(0.001)


def test_concurrent_items_are_committed_together() -> None:
    commits = Commits()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(group.submit, 0)
        assert commits.begun.wait(30)
        others = [pool.submit(group.submit, item) for item in range(1, 9)]
        gather(group, 8)
        commits.go.set()
        assert first.result(30) == 0
        for item, future in enumerate(others, 1):
            if item % 2:
                with pytest.raises(ValueError, match=str(item)):
                    future.result(30)
            else:
                assert future.result(30) == item * 10
    assert [len(items) for items in commits.groups] == [1, 8]
    assert group.submit(2) == 20


def test_a_failed_commit_fails_its_group_only() -> None:
    commits = Commits()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(group.submit, 0)
        assert commits.begun.wait(30)
        others = [pool.submit(group.submit, item) for item in (-2, 2)]
        gather(group, 2)
        commits.go.set()
        assert first.result(30) == 0
        for future in others:
            with pytest.raises(OSError, match="the disk"):
                future.result(30)
    assert group.submit(4) == 40


def test_many_concurrent_items() -> None:
    commits = Commits()
    commits.go.set()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(group.submit, range(0, 4000, 4))) == [item * 10 for item in range(0, 4000, 4)]
    assert sorted(item for items in commits.groups for item in items) == list(range(0, 4000, 4))


INTERRUPTED = """
import random, signal, sys, threading
from tureen.errors import StorageFailed
from tureen.pot.group_commit import GroupCommit

group = GroupCommit(lambda items: items)
counts, ending = [0, 0, 0], threading.Event()

def work(number):
    while not ending.is_set():
        try:
            assert group.submit(number) == number
            counts[number] += 1
        except StorageFailed:
            pass  # the thread that committed for it was interrupted

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
threads = [threading.Thread(target=work, args=(number,)) for number in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0005))
        while True:
            group.submit(9)
    except KeyboardInterrupt:
        pass
assert group.submit(7) == 7
before = list(counts)
while any(counts[number] < before[number] + 5 for number in range(len(threads))):
    ending.wait(0.01)
ending.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("others", [0, 3])
def test_interrupts_leave_no_caller_waiting(others: int) -> None:
    """Like Ctrl-C, in the thread that commits for others and in a thread that waits."""
    subprocess.run([sys.executable, "-c", INTERRUPTED, str(others)], check=True, timeout=100)


def test_uncommitted_items_are_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    group = GroupCommit(Commits())
    monkeypatch.setattr(group, "_run", lambda: None)
    with pytest.raises(StorageFailed, match="interrupted"):
        group.submit(2)


def test_without_group_commit_each_item_is_committed_alone() -> None:
    commits = Commits()
    commits.go.set()
    with without_fast_paths(FastPath.GROUP_COMMIT):
        group = GroupCommit(commits)
    committing = threading.Lock()

    def commit(items: list[int]) -> list[int | Exception]:
        assert committing.acquire(blocking=False), "two commits at the same time"
        # Long enough for other threads to submit their items.
        threading.Event().wait(0.001)
        committing.release()
        return commits(items)

    group._commit = commit
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(group.submit, range(0, 400, 2))) == [item * 10 for item in range(0, 400, 2)]
    assert sorted(commits.groups) == [[item] for item in range(0, 400, 2)]
    with pytest.raises(ValueError, match="7"):
        group.submit(7)
    with pytest.raises(OSError, match="the disk"):
        group.submit(-2)
    group.finish(lambda: commits.groups.append([-1]))
    assert commits.groups[-1] == [-1]
    assert group.submit(2) == 20


def test_turns_are_exclusive(tmp_path: Path) -> None:
    """For the threads of one object, and for two objects as in two processes."""
    turns = [Turn(tmp_path / "turn"), Turn(tmp_path / "turn")]
    inside, most = 0, 0
    count = threading.Lock()

    def write(turn: Turn) -> None:
        nonlocal inside, most
        for _ in range(50):
            with turn.taken():
                with count:
                    inside += 1
                    most = max(most, inside)
                threading.Event().wait(0.0001)
                with count:
                    inside -= 1

    threads = [threading.Thread(target=write, args=(turns[n % 2],)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)
    for turn in turns:
        turn.close()


def test_waiting_for_a_turn_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tureen.pot.turn.MAX_WAIT", 0.05)
    first, second = Turn(tmp_path / "turn"), Turn(tmp_path / "turn")
    with first.taken(), first.taken(), second.taken():
        pass
    # After the timeout, turns work as before, even after closing.
    first.close()
    with first.taken(), pytest.raises(BlockingIOError):
        fcntl.flock(second._opened(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    first.close()
    second.close()


def test_garbage_collection_closes_the_file_of_a_turn(tmp_path: Path) -> None:
    turn = Turn(tmp_path / "turn")
    with turn.taken():
        file = turn._opened()
        os.fstat(file)
    del turn
    gc.collect()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(file)
