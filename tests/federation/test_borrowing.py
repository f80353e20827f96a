"""Borrowed replicas: who waits for tuples, and when replicas are returned."""

from __future__ import annotations

import pytest

from tureen.federation import borrowing
from tureen.federation.borrowing import MOST_BORROWERS, Borrowing


def test_few_borrowers_wait_and_ask() -> None:
    asked: list[bool] = []
    waited: list[int] = []

    def claim(asks: bool) -> int:
        asked.append(asks)
        return len(asked)

    def wait(replica: int, _deadline: float) -> None:
        # While it waits, the next one borrows.
        waited.append(replica)
        lent.borrow(claim)

    lent = Borrowing(wait, lambda _replica: None)
    assert lent.borrow(claim) == 1
    assert waited == list(range(1, MOST_BORROWERS + 1))
    assert asked == [True] * MOST_BORROWERS + [False]
    # Those that waited have made room.
    lent.borrow(claim)
    assert asked[MOST_BORROWERS + 1 :] == asked[: MOST_BORROWERS + 1]


def test_a_failing_claim_makes_room() -> None:
    lent = Borrowing(lambda _replica, _deadline: None, lambda _replica: None)

    def fail(asks: bool) -> int:
        assert asks
        raise ValueError("no peer")

    for _ in range(MOST_BORROWERS + 1):
        with pytest.raises(ValueError, match="no peer"):
            lent.borrow(fail)


def test_replicas_are_returned_when_due(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    lent = Borrowing(lambda _replica, _deadline: None, released.append)
    assert lent.borrow(lambda _asks: 7) == 7
    assert not lent.return_due()
    monkeypatch.setattr(borrowing, "BORROWED_SECONDS", 0.0)
    assert lent.borrow(lambda _asks: 8) == 8
    assert lent.return_due()
    assert released == [8]
    assert not lent.return_due()
