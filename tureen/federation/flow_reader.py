"""Reading a flow: the tuples that a peer asked for, from a stream that lives here or from a replica."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tureen.federation.flow_punctuations import FlowPunctuations, with_punctuations
from tureen.federation.flow_source import FlowSource
from tureen.federation.frame import FRAME_ROWS, FlowFrame, flow_schema
from tureen.matching import Selector
from tureen.pot.home_progress import HomeProgress
from tureen.pot.registered import RegisteredInput
from tureen.predicate import Interval, Within
from tureen.results.changes import NewRows, new_rows
from tureen.results.invoke import Invoker
from tureen.results.stream_state import StreamState
from tureen.schema import ARRIVAL, HOME_ID
from tureen.window import WHOLE

READ_TUPLES = 1 << 17
"""The number of tuples after which a flow is read in another step."""


FRAME_TARGET = 1 << 24
"""The bytes of the rows of a frame, on average: both sides hold one frame in memory."""


class FlowReader:
    """Reads a flow step by step. It has no durable state: its receiver sends the progress with each request."""

    def __init__(self, invoker: Invoker, source: FlowSource, after: int, punctuations: int | None = None) -> None:
        """Begin with the tuple id `after` of the home, and perhaps with punctuations from an id of the home on."""
        self._invoker, self._source = invoker, source
        self._schema = flow_schema(source.stream.visible, source.columns)
        self._seen: tuple[str | None, HomeProgress | None] = (None, None)
        self._next_id = after
        """The next id of the home."""
        self._mark: int | None = after if source.progress is None else None
        """The next id here. Of a replica, whose tuples have ids of their own, the first read finds where to begin."""
        self._selector = Selector(source.clause, source.stream.schema)
        self._punctuations = None
        if punctuations is not None:
            self._punctuations = FlowPunctuations(invoker.view.catalog, source, is_from_start=not punctuations)

    def _state(self) -> tuple[str | None, HomeProgress | None]:
        return self._source.away(), None if self._source.progress is None else self._source.progress()

    def has_news(self) -> bool:
        """Whether there may be something to read since the last call, which costs less than reading."""
        return self._source.progress is None or self._state() != self._seen

    def read(self) -> list[FlowFrame]:
        """The frames since the last call, up to a number of tuples; without new tuples, one that has no rows."""
        # Before the rows: what was lacking may be stored while they are read, and is not among them.
        away, progress = self._seen = self._state()
        return self._invoker.with_stream(self._source.stream.id, lambda state: self._read(state, progress, away))

    def _read(self, state: StreamState, progress: HomeProgress | None, away: str | None) -> list[FlowFrame]:
        first = self._beginning(state) if self._mark is None else self._mark
        end = min(state.stream.next_id, first + READ_TUPLES)
        is_end = end >= state.stream.next_id
        schema = state.stream.schema
        hidden = [name for name in (ARRIVAL, HOME_ID) if name in schema.stored.names]
        # A tuple without columns has at least its time.
        names = [*self._source.columns, *hidden] or [schema.time_column]
        new = self._new_rows(state, names, self._selector, first, end)
        placed = [] if self._punctuations is None else self._punctuations.read(state, first, end, new.ids)
        # Rows that were stored after the progress was read are there, and perhaps more after them.
        end_id = end if progress is None else max(progress.next_id if is_end else 0, self._next_id)
        last_time = state.stream.last_time if is_end else None
        frames = with_punctuations(self._frames(new, end_id, last_time, away, is_end=is_end), placed)
        self._mark, self._next_id = end, frames[-1].next_id
        return frames

    def _beginning(self, state: StreamState) -> int:
        """The id of the first tuple of a replica that has at least the id at the home to begin with."""
        if not self._next_id:
            return 0
        selector = Selector((Within(HOME_ID, (Interval(self._next_id, None),)),), state.stream.schema)
        new = self._new_rows(state, [HOME_ID], selector, 0, state.stream.next_id)
        return int(new.ids[0]) if len(new) else state.stream.next_id

    def _new_rows(self, state: StreamState, names: Sequence[str], selector: Selector, first: int, end: int) -> NewRows:
        leaf = RegisteredInput(stream_id=self._source.stream.id)
        return new_rows(state, names, WHOLE, leaf, selector, first, end)

    def _frames(
        self, new: NewRows, end_id: int, last_time: int | None, away: str | None, *, is_end: bool
    ) -> list[FlowFrame]:
        if not len(new):
            return [FlowFrame(end_id, last_time, None, is_end, away)]
        rows = new.rows
        if HOME_ID not in rows.column_names:
            rows = rows.append_column(HOME_ID, pa.array(new.ids))
        rows = rows.select(self._schema.names).cast(self._schema).combine_chunks()
        ids = np.asarray(rows.column(HOME_ID))
        frames = []
        size = max(1, min(FRAME_ROWS, FRAME_TARGET * len(rows) // max(1, rows.nbytes)))
        for start in range(0, len(rows), size):
            part = rows.slice(start, size)
            is_last = start + size >= len(rows)
            next_id = int(ids[min(start + size, len(rows)) - 1]) + 1
            if is_last:
                next_id = max(end_id, next_id)
            batch = part.to_batches()[0] if len(part) else None
            frames.append(FlowFrame(next_id, last_time if is_last else None, batch, is_end and is_last, away))
        return frames
