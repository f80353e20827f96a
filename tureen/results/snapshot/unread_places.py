"""The punctuations of a stream after a mark, each with its place among the tuples."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from tureen.closed.pattern_block import PatternBlock
from tureen.position import Mark
from tureen.pot.catalog import Catalog
from tureen.pot.punctuation_places import PunctuationPlace, StoredPlaces
from tureen.results.snapshot.stream_state import StreamState


@dataclass(frozen=True)
class UnreadPlaces:
    """The punctuations of a stream from a number on, up to the end of what is read."""

    stored: StoredPlaces
    is_punctuated: bool = True

    @property
    def first(self) -> int:
        """The number of the first one; they are numbered consecutively."""
        return self.stored.first

    @property
    def end(self) -> int | None:
        """The number after the last one; None for a stream that never had punctuations."""
        return self.first + len(self.stored.places) if self.is_punctuated else None

    @cached_property
    def places(self) -> Sequence[PunctuationPlace]:
        """The punctuations; most readers need only their number."""
        return self.stored.decoded()

    @cached_property
    def _next_ids(self) -> list[int]:
        return [next_id for next_id, _ in self.stored.places]

    def number_after(self, tuple_id: int) -> int | None:
        """The number of the first one that stands after a tuple."""
        return self.first + bisect_right(self._next_ids, tuple_id) if self.is_punctuated else None


_NEVER_PUNCTUATED = UnreadPlaces(StoredPlaces(0, []), is_punctuated=False)


def unread_places(catalog: Catalog, state: StreamState, mark: Mark, end_id: int) -> UnreadPlaces:
    """The punctuations after a mark that stand before the tuple `end_id`, or right before where it will be.

    Punctuations older than those in the catalog are left out: only what they close is known.
    """
    count = state.punctuation_end
    if not count:
        return _NEVER_PUNCTUATED
    # A copy of a pot that was in use may lack the last ones.
    number = None if mark.punctuations is None else min(mark.punctuations, count)
    if number == count:
        return UnreadPlaces(StoredPlaces(count, []))
    known = state.punctuations(catalog, 0 if number is None else number)
    if number is None:
        number = known.first + bisect_left(known.places, mark.next_id, key=itemgetter(0))
        known = known.from_number(number)
    first = known.first if known.places else count
    return UnreadPlaces(StoredPlaces(first, _before(known, end_id).places))


def unread_block(catalog: Catalog, state: StreamState, number: int, end_id: int) -> PatternBlock:
    """As `unread_places`, the punctuations from a number on as a block."""
    count = state.punctuation_end
    if number >= count:
        return PatternBlock.of_stored(count, ())
    known = _before(state.punctuations(catalog, number), end_id)
    return PatternBlock.of_stored(known.first, [pattern for _, pattern in known.places])


def _before(known: StoredPlaces, end_id: int) -> StoredPlaces:
    """Those that stand before a tuple, or right before where it will be."""
    count = bisect_right(known.places, end_id, key=itemgetter(0))
    return StoredPlaces(known.first, known.places[:count])


def end_places(state: StreamState) -> UnreadPlaces:
    """No punctuations, at the end of a stream."""
    count = state.punctuation_end
    return UnreadPlaces(StoredPlaces(count, [])) if count else _NEVER_PUNCTUATED
