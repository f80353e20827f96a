"""The punctuations of a stream after a mark, each with its place among the tuples."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tureen.position import Mark
from tureen.pot.catalog import Catalog
from tureen.pot.punctuation_places import PunctuationPlace
from tureen.results.stream_state import StreamState


@dataclass(frozen=True)
class UnreadPlaces:
    """The punctuations of a stream from a number on, up to the end of what is read."""

    first: int
    """The number of the first one; they are numbered consecutively."""
    places: Sequence[PunctuationPlace]
    is_punctuated: bool = True

    @property
    def end(self) -> int | None:
        """The number after the last one; None for a stream that never had punctuations."""
        return self.first + len(self.places) if self.is_punctuated else None

    @cached_property
    def _next_ids(self) -> list[int]:
        return [place.next_id for place in self.places]

    def number_after(self, tuple_id: int) -> int | None:
        """The number of the first one that stands after a tuple."""
        return self.first + bisect_right(self._next_ids, tuple_id) if self.is_punctuated else None


_NEVER_PUNCTUATED = UnreadPlaces(0, (), is_punctuated=False)


def unread_places(catalog: Catalog, state: StreamState, mark: Mark, end_id: int) -> UnreadPlaces:
    """The punctuations after a mark that stand before the tuple `end_id`, or right before where it will be.

    Of those that are older than what the catalog has, only what they close is known: they are left out.
    """
    count = state.punctuation_end
    if not count:
        return _NEVER_PUNCTUATED
    # A copy of a pot that was in use may lack the last ones.
    number = None if mark.punctuations is None else min(mark.punctuations, count)
    if number == count:
        return UnreadPlaces(count, ())
    with catalog.read() as tx:
        known = state.punctuations(tx, 0 if number is None else number)
    if number is None:
        number = next((place.number for place in known if place.next_id >= mark.next_id), count)
    places = [place for place in known if place.number >= number]
    first = places[0].number if places else count
    return UnreadPlaces(first, [place for place in places if place.next_id <= end_id])


def end_places(state: StreamState) -> UnreadPlaces:
    """No punctuations, at the end of a stream."""
    count = state.punctuation_end
    return UnreadPlaces(count, ()) if count else _NEVER_PUNCTUATED
