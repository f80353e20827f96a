"""Windows composed of finer windows, against the rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.sharing.step_windows import composes, part_starts
from tureen.window import Steps

steps = st.builds(Steps, st.integers(1, 12), st.integers(1, 6), st.integers(0, 6))


def sums(windows: Steps, times: list[int]) -> dict[int, int]:
    """The sum of the times in each window that has one."""
    starts = [start for start in range(-60, 60) if (start - windows.origin) % windows.slide == 0]
    inside = {start: [time for time in times if start <= time < start + windows.width] for start in starts}
    return {start: sum(chosen) for start, chosen in inside.items() if chosen}


@given(steps, steps, st.integers(1, 4), st.lists(st.integers(0, 40), max_size=20))
@example_settings(150)
def test_composed_sums_equal_those_of_the_rows(finer: Steps, coarser: Steps, factor: int, times: list[int]) -> None:
    if factor > 1:
        coarser = Steps(finer.width * factor, finer.slide * factor, finer.origin)
    if not composes(finer, coarser):
        return
    partial = sums(finer, times)
    expected = sums(coarser, times)
    starts = [start for start in range(-60, 60) if (start - coarser.origin) % coarser.slide == 0]
    composed = {
        start: [partial[part] for part in part_starts(finer, coarser, start) if part in partial] for start in starts
    }
    assert {start: sum(parts) for start, parts in composed.items() if parts} == expected


def test_windows_of_the_paper() -> None:
    """Query 4 is computed from the windows of Query 3."""
    assert composes(Steps(20, 10), Steps(60, 40))
    assert not composes(Steps(60, 40), Steps(20, 10))
    assert not composes(Steps(20, 10, origin=5), Steps(60, 40))
    assert not composes(Steps(20, 10, rows=True), Steps(60, 40))
    assert composes(Steps(20, 15), Steps(20, 15)), "the same windows, although they do not divide each other"
