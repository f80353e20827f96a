"""The punctuations of streams, as a process has read them from the catalog, the inbox and closed-set files."""

from __future__ import annotations

import threading

from tureen.closed.gate import Gate
from tureen.closed.punctuation_history import PunctuationHistory
from tureen.pot.catalog import Catalog
from tureen.pot.closed_files import closed_files_of, load_closed_file
from tureen.results.stream_state import StreamState


class PunctuationHistories:
    """A history for each stream whose punctuations were asked for."""

    def __init__(self, catalog: Catalog) -> None:
        """Start without any."""
        self._catalog = catalog
        self._histories: dict[int, PunctuationHistory] = {}
        self._lock = threading.Lock()

    def of(self, state: StreamState) -> PunctuationHistory:
        """The punctuations of a stream, up to those of a state at least."""
        stream_id = state.stream.id
        with self._lock:
            history = self._histories.get(stream_id)
            if history is None:
                history = self._histories[stream_id] = PunctuationHistory(state.stream.schema)
            if history.end < state.punctuation_end:
                self._read_on(history, state)
            return history

    def _read_on(self, history: PunctuationHistory, state: StreamState) -> None:
        with self._catalog.read() as tx:
            places = state.punctuations(tx, history.end)
            first = places[0].number if places else state.punctuation_end
            files = closed_files_of(tx, state.stream.id) if first > history.end else []
        if first > history.end:
            # The catalog has only the newest ones. The files have all that are older, and some that are newer.
            gate = Gate(state.stream.schema, state.stream.rules)
            for file in files:
                load_closed_file(self._catalog, gate, file)
            history.start_from(gate.closed, first)
            history.known_from = state.punctuation_end
        history.add([place.pattern for place in places])
