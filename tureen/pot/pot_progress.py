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
        with self._catalog.read() as tx:
            seq = current_seq(tx)
            stream = stream_by_id(tx, position.stream) if isinstance(position, PushPosition) else None
        pushes = self.now().pushes
        if isinstance(position, Position):
            return (seq, pushes) >= (position.seq, position.pushes)
        if stream is None:
            raise UnknownStream("the stream of this position was dropped")
        return max(stream.taken, self._heads.end(stream.id)) >= position.end
