"""The changes of one read: of a query, or of the queries of a template.

Those of groups are in `group_batches.py`, those of all queries of an owner in `feed_parts.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tureen.closed.pattern_values import punctuation_of
from tureen.position import QueryKey
from tureen.results.answer import Change, stored_template
from tureen.results.changes.changes import NewRows
from tureen.results.changes.join_changes import NewJoinedRows
from tureen.results.changes.output_patterns import PlacedOutput
from tureen.results.templates.template_matches import TemplateMatches
from tureen.schema import type_of_arrow

SLICE = 1024
"""The number of rows that are converted to Python objects at a time."""


class ChangeBatch(Protocol):
    """Changes since a position, and the position after all of them."""

    def __len__(self) -> int:
        """The number of changes."""

    def __iter__(self) -> Iterator[Change]:
        """The changes, in order of arrival."""

    def position(self) -> str:
        """The position after all of them."""

    @property
    def due(self) -> float | None:
        """After how many seconds time alone may change the answers; None if it does not."""


@dataclass(frozen=True)
class QueryChanges:
    """The rows that joined one query's answer, and its punctuations if they were read."""

    handle: str
    new: NewRows | NewJoinedRows

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.new) + len(self.new.punctuations)

    def position(self) -> str:
        """The position after all of them."""
        return self.new.position()

    @property
    def due(self) -> float | None:
        """None: time alone makes no change."""
        return None

    def __iter__(self) -> Iterator[Change]:
        """The rows and punctuations, in order of arrival."""
        placed, template = deque(self.new.punctuations), stored_template(self.new.rows.schema)
        for start in range(0, len(self.new), SLICE):
            for index, row in enumerate(self.new.rows.slice(start, SLICE).to_pylist(), start):
                while placed and placed[0].at <= index:
                    yield self._punctuation(placed.popleft())
                yield Change(self.handle, row, self.new.position(index), template=template)
        yield from map(self._punctuation, placed)

    def _punctuation(self, placed: PlacedOutput) -> Change:
        fields = self.new.rows.schema
        types = {name: type_of_arrow(fields.field(name).type) for name, _ in placed.pattern.columns}
        punctuation = punctuation_of(
            placed.pattern, {name: column_type for name, column_type in types.items() if column_type is not None}
        )
        position = self.new.position_after(placed)
        return Change(self.handle, None, position, kind="punctuation", punctuation=punctuation)


@dataclass(frozen=True)
class TemplateChanges:
    """The rows that joined the answers of a template's queries."""

    matches: TemplateMatches

    def __len__(self) -> int:
        """The number of changes."""
        return len(self.matches)

    def position(self) -> str:
        """The position after all of them."""
        return self.matches.position()

    @property
    def due(self) -> float | None:
        """None: time alone makes no change."""
        return None

    def __iter__(self) -> Iterator[Change]:
        """The rows, in order of arrival and for one row in the order of the queries."""
        matches = self.matches
        for start in range(0, len(self), SLICE):
            rows = matches.rows.slice(start, SLICE).to_pylist()
            for index, row in enumerate(rows, start):
                key = QueryKey(matches.template, int(matches.numbers[index]))
                yield Change(str(key), row, matches.position(index), matches.labels[index])
