"""Group commit: everybody gets their own outcome, few commits do it, and nobody is left waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tureen.errors import StorageFailed
from tureen.pot import groups
from tureen.pot.groups import GroupCommit
from tureen.pot.turn import Turn


class Commits:
    """Commits that can be held up; an odd item is refused, and -2 fails altogether."""

    def __init__(self) -> None:
        """Hold them up."""
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
    """Wait until so many have gathered for the next commit."""
    while len(group._slots) < count:
        threading.Event().wait(0.001)


def test_those_who_come_meanwhile_are_committed_together_each_with_an_own_outcome() -> None:
    commits = Commits()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(group.submit, 0)
        assert commits.begun.wait(30)
        others = [pool.submit(group.submit, item) for item in range(1, 9)]
        gather(group, 8)
        commits.go.set()
        assert first.result(30) == 0
        for item, one in enumerate(others, 1):
            if item % 2:
                with pytest.raises(ValueError, match=str(item)):
                    one.result(30)
            else:
                assert one.result(30) == item * 10
    assert [len(items) for items in commits.groups] == [1, 8]
    assert group.submit(2) == 20


def test_a_commit_that_fails_fails_for_its_own_group_alone() -> None:
    commits = Commits()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(group.submit, 0)
        assert commits.begun.wait(30)
        others = [pool.submit(group.submit, item) for item in (-2, 2)]
        gather(group, 2)
        commits.go.set()
        assert first.result(30) == 0
        for one in others:
            with pytest.raises(OSError, match="the disk"):
                one.result(30)
    assert group.submit(4) == 40


def test_many_at_once_lose_nothing() -> None:
    commits = Commits()
    commits.go.set()
    group = GroupCommit(commits)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(group.submit, range(0, 4000, 4))) == [item * 10 for item in range(0, 4000, 4)]
    assert sorted(item for items in commits.groups for item in items) == list(range(0, 4000, 4))


@pytest.mark.parametrize("leads", [False, True])
def test_one_who_is_interrupted_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch, leads: bool) -> None:
    """As by Ctrl-C: while it sleeps, or when it was just told that it is its turn."""
    commits = Commits()
    group = GroupCommit(commits)
    left = threading.Event()

    def sleep(slot: groups._Slot[int, int]) -> None:
        if threading.current_thread().name != "interrupted":
            real_sleep(slot)
            return
        if leads:
            real_sleep(slot)
        raise KeyboardInterrupt

    def leave(self: GroupCommit[int, int], slot: groups._Slot[int, int]) -> None:
        real_leave(self, slot)
        left.set()

    real_sleep, real_leave = groups._Slot.sleep, GroupCommit._leave
    monkeypatch.setattr(groups._Slot, "sleep", sleep)
    monkeypatch.setattr(GroupCommit, "_leave", leave)

    def main() -> None:
        with pytest.raises(KeyboardInterrupt):
            group.submit(2)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(group.submit, 0)
        assert commits.begun.wait(30)
        thread = threading.Thread(target=main, name="interrupted")
        thread.start()
        if leads:
            gather(group, 1)
        else:
            assert left.wait(30)
        other = pool.submit(group.submit, 4)
        gather(group, 2 if leads else 1)
        commits.go.set()
        assert first.result(30) == 0
        assert other.result(30) == 40
        thread.join(30)
    assert group.submit(6) == 60


def test_what_is_not_committed_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    group = GroupCommit(Commits())
    monkeypatch.setattr(group, "_run", lambda slots: None)  # noqa: ARG005
    with pytest.raises(StorageFailed, match="interrupted"):
        group.submit(2)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """Of one object's threads, and of two that stand for two processes."""
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
    with pytest.raises(ValueError, match="closed"), turns[0].taken():
        pass
