"""The histories of what punctuations close, one for each stream that a process follows."""

from __future__ import annotations

import threading

from tureen.closed.closed_set import ClosedSet
from tureen.closed.closing_history import ClosingHistory
from tureen.closed.pattern_block import PatternBlock
from tureen.errors import DamagedFile
from tureen.pot.catalog import Catalog
from tureen.pot.closed_files import closed_files_of
from tureen.pot.gates import covered_to, read_gate
from tureen.results.snapshot.stream_state import StreamState


class ClosingHistories:
    """Histories that are read when they are first needed, and continued as their streams are."""

    def __init__(self, catalog: Catalog) -> None:
        """Nothing is read yet."""
        self._catalog = catalog
        self._histories: dict[int, ClosingHistory] = {}
        self._lock = threading.Lock()

    def of(self, state: StreamState) -> ClosingHistory:
        """The history of a stream, at least up to a state."""
        with self._lock:
            history = self._histories.get(state.stream.id)
            if history is not None and history.end >= state.punctuation_end:
                return history
            known = state.punctuations(self._catalog, 0 if history is None else history.end)
            if history is None or (known.places and known.first > history.end):
                first = known.first if known.places else state.punctuation_end
                earlier = self._all_closed(state) if first else None
                history = self._histories[state.stream.id] = ClosingHistory(state.stream.schema, first, earlier)
            history.add(PatternBlock.of_stored(history.end, [pattern for _, pattern in known.places]))
            return history

    def add(self, stream_id: int, block: PatternBlock) -> None:
        """Continue a history with punctuations that were read, if they are the next ones."""
        with self._lock:
            history = self._histories.get(stream_id)
            if history is not None and history.end == block.first:
                history.add(block)

    def _all_closed(self, state: StreamState) -> ClosedSet | None:
        """What is closed in a stream; None if this cannot be told, or includes later punctuations than the state."""
        with self._catalog.read() as tx:
            files = closed_files_of(tx, state.stream.id)
        if covered_to(files) > state.pending.end:
            return None
        try:
            return read_gate(self._catalog, state.stream, files, state.pending.end).closed
        except DamagedFile:
            return None
