"""The changes of a join with the punctuations of its output, which come after the rows of what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tureen.position import Mark, Position, UnreadChanges
from tureen.pot.catalog import Catalog
from tureen.results.changes.changes import mark_of
from tureen.results.changes.join_changes import NewJoinedRows
from tureen.results.changes.join_propagation import JoinPropagation
from tureen.results.changes.output_patterns import PlacedOutput
from tureen.results.snapshot.stream_state import Snapshot
from tureen.results.snapshot.unread_places import end_places, unread_places


def with_propagated(
    catalog: Catalog,
    new: NewJoinedRows,
    propagation: JoinPropagation | None,
    snapshot: Snapshot,
    since: Position | None,
) -> NewJoinedRows:
    """New rows with the punctuations that are propagated since a position; without one, none yet.

    The snapshot has at least the tuples of the new rows, and punctuated streams. Without a propagation, the join has no
    punctuations.
    """
    if since is None:
        numbers = {stream: end_places(snapshot.streams[stream]).end for stream in new.marks}
        marks = {stream: mark._replace(punctuations=numbers[stream]) for stream, mark in new.marks.items()}
        return replace(new, marks=marks, end=None)
    reader = _Marks(catalog, snapshot)
    placed: list[PlacedOutput] = []
    unread = since.unread
    before = reader.numbered({stream: mark_of(snapshot.streams[stream], since) for stream in new.marks})
    if unread is not None:
        first = reader.numbered(unread.marks)
        if unread.after and propagation is not None:
            placed += _placed(propagation, first, before, 0)[unread.after :]
        elif not unread.after:
            before = first
    after = reader.ends(before, new.marks)
    if propagation is not None:
        placed += _placed(propagation, before, after, len(new))
    return replace(new, marks=after, end=None, punctuations=placed, unread=UnreadChanges(0, before))


class _Marks:
    """Marks of streams with the numbers of punctuations."""

    def __init__(self, catalog: Catalog, snapshot: Snapshot) -> None:
        self._catalog, self._snapshot = catalog, snapshot

    def numbered(self, marks: Mapping[int, Mark]) -> dict[int, Mark]:
        """Marks that may lack the number of the next punctuation."""
        return {stream: Mark(mark.next_id, punctuations=self._number(stream, mark)) for stream, mark in marks.items()}

    def _number(self, stream: int, mark: Mark) -> int | None:
        state = self._snapshot.streams[stream]
        if mark.punctuations is not None or not state.punctuation_end:
            return mark.punctuations
        return unread_places(self._catalog, state, mark, mark.next_id).first

    def ends(self, before: Mapping[int, Mark], ends: Mapping[int, Mark]) -> dict[int, Mark]:
        """The marks at ends that were read, given those before."""
        numbers = {
            stream: unread_places(
                self._catalog,
                self._snapshot.streams[stream],
                Mark(0, punctuations=mark.punctuations),
                ends[stream].next_id,
            ).end
            for stream, mark in before.items()
        }
        return {stream: Mark(end.next_id, punctuations=numbers[stream]) for stream, end in ends.items()}


def _placed(
    propagation: JoinPropagation, before: Mapping[int, Mark], after: Mapping[int, Mark], at: int
) -> list[PlacedOutput]:
    """What is propagated between two vectors of marks, after a number of rows."""
    patterns = propagation.between(before, after)
    last = len(patterns)
    return [
        PlacedOutput(at, pattern, after, None if count == last else UnreadChanges(count, before))
        for count, pattern in enumerate(patterns, 1)
    ]
