"""The progress of a pot: its commits and its pushes, both visible to every process that has it open."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tureen.errors import UnknownStream
from tureen.position import Position, PushPosition
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.heads import HeadsReader
from tureen.pot.streams import stream_by_id


class Moment(NamedTuple):
    """A moment in a pot's life: equal moments have nothing new between them."""

    token: int
    pushes: int


class PotProgress:
    """The progress of one pot."""

    def __init__(self, catalog: Catalog) -> None:
        """Observe the pot of a catalog."""
        self._catalog = catalog
        self._heads = HeadsReader(catalog.root / "inbox")
        self._token = -1
        self._existing: tuple[int, frozenset[int]] = (-1, frozenset())
        """A token, and streams that existed then."""
        self.is_derived: Callable[[Position | PushPosition], bool] = lambda _: True
        """Whether derived streams have what follows from a position; set by the engine of this process.

        There is no news when that changes, but asking takes less than a microsecond.
        """

    def now(self) -> Moment:
        """The current moment; takes about a microsecond."""
        token = self._catalog.token()
        if token != self._token:
            self._heads.refresh()
            self._token = token
        return Moment(token, self._heads.pushes())

    def is_reached(self, position: Position | PushPosition) -> bool:
        """Whether an answer now would reflect a position: that of a push, or of another answer.

        Over derived streams only if `is_derived` returns True as well.
        """
        # Read first: streams that exist after it exist as long as it is the same.
        token = self.now().token
        existing = self._existing[1] if self._existing[0] == token else frozenset[int]()
        if isinstance(position, PushPosition) and position.stream in existing and self._is_pushed(position):
            return True
        with self._catalog.read() as tx:
            seq = current_seq(tx)
            stream = stream_by_id(tx, position.stream) if isinstance(position, PushPosition) else None
        if isinstance(position, Position):
            return (seq, self.now().pushes) >= (position.seq, position.pushes)
        if stream is None:
            raise UnknownStream("the stream of this position was dropped")
        self._existing = token, existing | {stream.id}
        return stream.taken >= position.end or self._is_pushed(position)

    def _is_pushed(self, position: PushPosition) -> bool:
        """Whether the log of a stream reaches a position, for which no transaction is needed."""
        return self._heads.end(position.stream) >= position.end
