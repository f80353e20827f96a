"""Windows that are composed of finer windows (Data Stream Sharing, §3.3, Fig. 4).

A window of a query is a union of disjoint windows of a stream if the size and the step of the query's windows are
multiples of those of the stream's, and the size of the stream's is a multiple of its step.
"""

from __future__ import annotations

from tureen.window import Steps


def composes(finer: Steps, coarser: Steps) -> bool:
    """Whether each window of one sequence is a union of disjoint windows of another.

    >>> composes(Steps(20, 10), Steps(60, 40)), composes(Steps(20, 10), Steps(50, 40))
    (True, False)
    """
    if (finer.rows, finer.partial) != (coarser.rows, coarser.partial) or finer.partial:
        return finer == coarser
    if (finer.width, finer.slide) == (coarser.width, coarser.slide):
        return (coarser.origin - finer.origin) % finer.slide == 0
    return (
        coarser.width % finer.width == 0
        and coarser.slide % finer.slide == 0
        and finer.width % finer.slide == 0
        and (coarser.origin - finer.origin) % finer.slide == 0
    )


def part_starts(finer: Steps, coarser: Steps, start: int) -> list[int]:
    """The starts of the finer windows that a window of a composed sequence consists of.

    >>> part_starts(Steps(20, 10), Steps(60, 40), 80)
    [80, 100, 120]
    """
    assert composes(finer, coarser)
    return list(range(start, start + coarser.width, finer.width))
