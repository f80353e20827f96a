"""Which failures are retried, and after how long."""

from __future__ import annotations

from tureen.client.retry import LONGEST_PAUSE, Failure, Retries


def test_unknown_outcome_is_retried_only_if_repeatable() -> None:
    for failure in Failure:
        safe = Retries(repeatable=True, known=True, patience=9)
        unsafe = Retries(repeatable=False, known=True, patience=9)
        unknown = failure in (Failure.LOST, Failure.BROKEN)
        assert safe.pause_after(failure, 0, None, 0.5) is not None
        assert (unsafe.pause_after(failure, 0, None, 0.5) is None) == unknown
        assert safe.unsure == unknown


def test_pauses_grow_until_patience_ends() -> None:
    retries = Retries(repeatable=True, known=True, patience=100)
    pauses = [retries.pause_after(Failure.LOST, 0, None, 1.0) or 0.0 for _ in range(10)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    assert retries.pause_after(Failure.LOST, 99, None, 1.0) is None
    assert retries.pause_after(Failure.BUSY, 10, 7.0, 1.0) == 7.0
    assert retries.pause_after(Failure.BUSY, 10, 95.0, 1.0) is None
